#pragma once

#include <algorithm>
#include <vector>

#include "framework/arithmetic/activation.hpp"
#include "framework/autograd/node.hpp"
#include "tests/tensors.hpp"

namespace quantrain::test {

inline QParams activation_params(const QType& type, float scale, int32_t zero_point) {
  return {type, -1, {scale}, {zero_point}};
}

/// A tensor of random codes, drawn from all codes of the type.
inline Tensor random_codes(const Shape& shape,
                           const QParams& params,
                           CodeStorage storage,
                           uint64_t seed) {
  Random random(seed);
  auto codes = std::make_shared<Codes>();
  codes->bytes = Buffer<uint8_t>(shape.elements());
  codes->storage = storage;
  codes->params = params;
  for (uint8_t& byte : codes->bytes) {
    const auto code = params.type.qmin() + static_cast<int32_t>(random.below(params.type.levels()));
    byte = static_cast<uint8_t>(code + codes->offset());
  }
  return Tensor::from_codes(shape, std::move(codes));
}

/// The codes of x as integers, for either storage.
inline std::vector<int32_t> code_values(const Tensor& x) {
  const Codes& codes = *x.codes();
  std::vector<int32_t> values;
  for (int64_t i = 0; i < x.elements(); ++i) {
    const int32_t stored =
        codes.storage == CodeStorage::kU8 ? int32_t{codes.u8()[i]} : int32_t{codes.s8()[i]};
    values.push_back(stored - codes.offset());
  }
  return values;
}

/// A float tensor with the real values of x.
inline Tensor as_floats(const Tensor& x) { return make_tensor(x.shape(), values(x)); }

/// Random codes of the type, stored as kU8, as a tensor that requires a gradient.
inline Tensor activations(
    const Shape& shape, const QType& type, float scale, int32_t zero_point, uint64_t seed) {
  return random_codes(shape, activation_params(type, scale, zero_point), CodeStorage::kU8, seed)
      .set_requires_grad(true);
}

/// A zero point strictly between qmin and qmax, if the type has such a code.
inline int32_t zero_of(const QType& type) { return type.is_signed ? 0 : (type.qmax() + 1) / 2; }

inline double scale_of(const Tensor& x) { return static_cast<double>(x.codes()->params.scale[0]); }

/// Checks that the nodes of a and b give equal gradients to their first inputs.
inline void check_same_gradient(const Tensor& a, const Tensor& b) {
  const Tensor grad_y = random_tensor(a.shape(), 9);
  CHECK(values(a.node()->backward(grad_y)[0]) == values(b.node()->backward(grad_y)[0]));
}

/// Runs `operation` on the codes that x was computed from, and checks that the result is `codes`.
inline void check_operation(const Tensor& x,
                            const integer::Operation& operation,
                            const Buffer<uint8_t>& codes) {
  const Node* node = x.node().get();
  while (node != nullptr && node->input(0).kind() == ValueKind::kWaiting)
    node = node->input(0).node().get();
  if (node == nullptr || x.elements() == 0) return;
  std::vector<const uint8_t*> inputs;
  for (const Tensor& input : node->inputs()) {
    if (input.defined() && input.kind() == ValueKind::kCodes &&
        input.codes()->storage == CodeStorage::kU8) {
      inputs.push_back(input.codes()->u8());
    }
  }
  REQUIRE(inputs.size() == input_sizes(operation).size());
  const int64_t n = x.elements() / output_size(operation);
  REQUIRE(n * output_size(operation) == x.elements());
  std::vector<uint8_t> again(static_cast<size_t>(x.elements()));
  integer::PreparedOperation(operation).run(n, inputs, again.data());
  CHECK(std::equal(again.begin(), again.end(), codes.begin()));
}

/// Checks that requantizing x's waiting result to the parameters y gives unclamped[i], clamped to
/// the range of x's activation, and that bit i of the mask tells whether unclamped[i] lies in
/// [qmin, qmax]. `unclamped` holds codes with the parameters y, with the zero point added.
inline void check_requantize(const Tensor& x,
                             const QParams& y,
                             const std::vector<int64_t>& unclamped) {
  REQUIRE(x.kind() == ValueKind::kWaiting);
  REQUIRE(static_cast<int64_t>(unclamped.size()) == x.elements());
  Codes codes;
  codes.bytes = Buffer<uint8_t>(x.elements());
  codes.params = y;
  Buffer<uint8_t> without_mask(x.elements());
  Buffer<uint8_t> mask((x.elements() + 7) / 8);
  const auto operation = TensorAccess::waiting(x)->requantize(
      y, TensorAccess::activation(x), codes.bytes.data(), mask.data());
  REQUIRE(operation != nullptr);
  check_operation(x, *operation, codes.bytes);
  CHECK(*TensorAccess::waiting(x)->requantize(
            y, TensorAccess::activation(x), without_mask.data(), nullptr) == *operation);
  const CodeClamp clamp =
      code_clamp(TensorAccess::activation(x), y.type, y.scale[0], y.zero_point[0]);
  int64_t wrong_codes = 0;
  int64_t wrong_bits = 0;
  for (int64_t i = 0; i < x.elements(); ++i) {
    const int64_t code = unclamped[static_cast<size_t>(i)];
    const int64_t expected = std::clamp<int64_t>(code, clamp.lo, clamp.hi) + codes.offset();
    wrong_codes += codes.bytes[i] != expected || without_mask[i] != expected;
    const bool inside = code >= y.type.qmin() && code <= y.type.qmax();
    wrong_bits += ((mask[i / 8] >> i % 8 & 1) != 0) != inside;
  }
  CHECK(wrong_codes == 0);
  CHECK(wrong_bits == 0);
}

/// Types that networks use for codes of activations, with 2 to 8 bits.
inline const std::vector<QType>& activation_types() {
  static const std::vector<QType> types = {
      {8, false, false}, {8, true, false}, {4, false, false}, {4, true, true}, {2, false, false}};
  return types;
}

}  // namespace quantrain::test
