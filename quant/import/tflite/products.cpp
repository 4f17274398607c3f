#include <algorithm>
#include <cmath>

#include "framework/core/rounding.hpp"
#include "quant/import/tflite/lowering.hpp"
#include "quant/import/tflite/windows.hpp"

// CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED.
namespace quantrain::tflite {
namespace {

enum { kX = 0, kWeights = 1, kBias = 2 };

/// The weight with number i, as the file stores it. Of two int4 weights in a byte, the first one
/// has the lower bits.
int32_t stored_weight(const Tensor& t, int64_t i) {
  switch (t.type) {
    case Type::kUint8: return t.data[i];
    case Type::kInt8: return static_cast<int8_t>(t.data[i]);
    default: {
      const int32_t bits = t.data[i / 2] >> (i % 2 * 4) & 15;
      return bits < 8 ? bits : bits - 16;
    }
  }
}

/// Weights [O, K].
struct Weights {
  SharedArray<int8_t> codes;
  std::vector<float> scale;  ///< [1] or [O]
  int bits = 8;
};

/// The weights of input 1. If `last`, the file has them as [K, O].
Weights weights(Lowering& l, int64_t outputs, int64_t length, bool last) {
  const Tensor& t = l.input(kWeights);
  if (t.type != Type::kInt8 && t.type != Type::kUint8 && t.type != Type::kInt4)
    throw Refusal{"with weights of " + name_of(t.type)};
  if (t.data.empty()) throw Refusal{"with weights that are not constant"};
  if (t.sparse) throw Refusal{"with sparse weights"};
  const int64_t count = outputs * length;
  if (t.data.size() != (t.type == Type::kInt4 ? (count + 1) / 2 : count))
    throw Refusal{"with weights of " + std::to_string(t.data.size()) + " bytes"};
  const int64_t scales = t.scale.size();
  const int axis = last ? static_cast<int>(l.dims(t).size()) - 1 : 0;
  if ((scales != 1 && scales != outputs) || (scales > 1 && t.axis != axis))
    throw Refusal{"with " + std::to_string(scales) + " scales of weights along axis " +
                  std::to_string(t.axis)};
  if (t.zero_point.size() > 1 && t.zero_point.size() != scales)
    throw Refusal{"with another number of zero points than scales of weights"};
  Weights result;
  result.bits = t.type == Type::kInt4 ? 4 : 8;
  for (int64_t o = 0; o < scales; ++o) {
    if (!(t.scale[o] > 0.0f) || !std::isfinite(t.scale[o]))
      throw Refusal{"with scales of weights that are not positive"};
    result.scale.push_back(t.scale[o]);
  }
  // Zero points of weights are subtracted from the weights here, if the differences fit.
  const auto zero_point = [&](int64_t o) {
    const int64_t zeros = t.zero_point.size();
    return zeros == 0 ? 0 : t.zero_point[zeros == 1 ? 0 : o];
  };
  l.spend(2 * count);  // also if they exist already: each use takes time
  const auto key = std::pair{l.input_index(kWeights), last};
  if (const auto made = l.weights.find(key); made != l.weights.end()) {
    result.codes = made->second;
    return result;
  }
  const int64_t limit = int64_t{1} << (result.bits - 1);
  std::vector<int8_t> codes(static_cast<size_t>(count));
  for (int64_t o = 0; o < outputs; ++o) {
    const int64_t zero = zero_point(o);
    for (int64_t k = 0; k < length; ++k) {
      const int64_t from = last ? k * outputs + o : o * length + k;
      // A zero point is any number: compare before the difference could overflow.
      const bool is_small = zero >= -256 && zero <= 256;
      const int64_t code = is_small ? stored_weight(t, from) - zero : limit;
      if (code < -limit || code >= limit)
        throw Refusal{
            "with zero points of weights that cannot be subtracted: use symmetric weights"};
      codes[static_cast<size_t>(o * length + k)] = static_cast<int8_t>(code);
    }
  }
  result.codes = codes;
  l.weights[key] = result.codes;
  return result;
}

SharedArray<int32_t> bias(Lowering& l, int64_t outputs) {
  if (!l.has_input(kBias)) return {};
  const Tensor& t = l.input(kBias);
  if (t.type != Type::kInt32) throw Refusal{"with a bias of " + name_of(t.type)};
  if (t.data.empty()) throw Refusal{"with a bias that is not constant"};
  const Vector<int32_t> numbers(t.data.bytes().data(), t.data.size() / 4);
  if (t.data.size() != 4 * outputs)
    throw Refusal{"with " + std::to_string(numbers.size()) + " biases for " +
                  std::to_string(outputs) + " outputs"};
  l.spend(4 * outputs);
  std::vector<int32_t> result;
  for (int64_t o = 0; o < outputs; ++o) result.push_back(numbers[o]);
  return result;
}

/// docs/quantization.md (7), (8)
integer::QuantizedProduct product_of(
    Lowering& l, const QParams& x, const Weights& w, int64_t outputs, Fused activation) {
  const DefaultRounding rounding;
  std::vector<double> scale;
  for (int64_t o = 0; o < outputs; ++o)
    scale.push_back(
        sum_scale(x.scale[0], w.scale[w.scale.size() == 1 ? 0 : static_cast<size_t>(o)]));
  integer::QuantizedProduct product;
  product.zero_x = stored_zero_point(x);
  product.weight = {w.codes, w.bits};
  product.bias = bias(l, outputs);
  product.output = integer::requantization(scale, l.output_params(), Activation::kNone);
  product.output->y = l.stored(activation);
  return product;
}

/// Numbers of the options' fields: those after the strides differ.
struct Fields {
  int activation, dilation_w, dilation_h;
};

void lower_window(Lowering& l, bool depthwise, const Fields& fields) {
  const std::optional<MergedPad> pad = l.merged_pad();
  const int32_t source = pad ? pad->source : l.input_index(kX);
  const QParams x = l.params(l.tensor(source));
  const Dims image = l.image_dims(l.tensor(source));
  const Dims w = l.input_dims(kWeights);
  if (w.size() != 4 || (depthwise && w[0] != 1))
    throw Refusal{"with weights of " + std::to_string(w.size()) + " axes"};
  kernels::Conv2dShape s{.h = image[1], .w = image[2], .c = image[3]};
  s.o = depthwise ? w[3] : w[0];
  s.kh = w[1];
  s.kw = w[2];
  const int64_t group_c = depthwise ? 1 : w[3];
  if (s.c % group_c != 0 || s.o % (s.c / group_c) != 0)
    throw Refusal{"whose weights do not fit its channels"};
  s.groups = s.c / group_c;
  s.dilation_h = l.options().get<int32_t>(fields.dilation_h, 1);
  s.dilation_w = l.options().get<int32_t>(fields.dilation_w, 1);
  set_window(l, s);
  if (pad) {
    s.pad_h = pad->top;
    s.end_h = pad->bottom - pad->top;
    s.pad_w = pad->left;
    s.end_w = pad->right - pad->left;
  }
  check_window_output(l, s);
  const Weights codes = weights(l, s.o, s.reduction(), depthwise);
  l.emit(integer::QuantizedConv2d{s, product_of(l, x, codes, s.o, l.fused(fields.activation))},
         {l.value_of(source)},
         codes.scale);
}

}  // namespace

void lower_conv2d(Lowering& l) { lower_window(l, false, {3, 4, 5}); }

void lower_depthwise(Lowering& l) { lower_window(l, true, {4, 5, 6}); }

void lower_fully_connected(Lowering& l) {
  const QParams x = l.input_params(kX);
  const Dims w = l.input_dims(kWeights);
  if (l.options().get<int8_t>(1, 0) != 0) throw Refusal{"with shuffled weights"};
  if (w.size() != 2) throw Refusal{"with weights of " + std::to_string(w.size()) + " axes"};
  const int64_t elements = elements_of(l.input_dims(kX));
  if (elements % w[1] != 0) throw Refusal{"whose weights do not fit its input"};
  integer::QuantizedLinear op;
  op.rows = elements / w[1];
  op.inputs = w[1];
  op.outputs = w[0];
  const Weights codes = weights(l, op.outputs, op.inputs, false);
  op.product = product_of(l, x, codes, op.outputs, l.fused(0));
  l.emit(std::move(op), {l.value(kX)}, codes.scale);
}

}  // namespace quantrain::tflite
