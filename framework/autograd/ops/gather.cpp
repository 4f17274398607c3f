#include "framework/autograd/ops/gather.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "framework/arithmetic/quantize.hpp"
#include "framework/arithmetic/stored.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/float/grain.hpp"

namespace quantrain {
namespace {

using integer::Gather;

/// Inverts Gather::Axis::index: for each index in x, the places in y that read it.
/// `of(index)` returns the places of an index in ascending order.
struct Places {
  std::vector<int32_t> begin;  // first entry of `place` for each index, then the end
  std::vector<int32_t> place;

  explicit Places(const Gather::Axis& axis) : begin(static_cast<size_t>(axis.extent) + 1, 0) {
    for (const int32_t index : axis.index) {
      if (index >= 0) ++begin[static_cast<size_t>(index) + 1];
    }
    for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    place.resize(static_cast<size_t>(begin.back()));
    std::vector<int32_t> next = begin;
    for (size_t p = 0; p < axis.index.size(); ++p) {
      const int32_t index = axis.index[p];
      if (index < 0) continue;
      place[static_cast<size_t>(next[static_cast<size_t>(index)]++)] = static_cast<int32_t>(p);
    }
  }
  std::span<const int32_t> of(int64_t index) const {
    const auto i = static_cast<size_t>(index);
    return {place.data() + begin[i], static_cast<size_t>(begin[i + 1] - begin[i])};
  }
};

/// For each element of x, the sum of the gradients at all its places in y.
class Scatter {
 public:
  explicit Scatter(const Gather& op) : op_(op), strides_(op.axes.size()) {
    int64_t stride = op.run;
    for (size_t k = op.axes.size(); k-- > 0;) {
      places_.insert(places_.begin(), Places(op.axes[k]));
      strides_[k] = stride;
      stride *= static_cast<int64_t>(op.axes[k].index.size());
    }
  }

  void run(const float* grad_y, int64_t x_elements, float* grad_x) const {
    const int64_t line = op_.axes.back().extent * op_.run;
    const int64_t lines = x_elements / line;
    parallel_for(lines, kernels::row_grain(line), [&](int64_t begin, int64_t end) {
      std::vector<int64_t> index(op_.axes.size());
      for (int64_t row = begin; row < end; ++row) {
        int64_t rest = row;
        for (size_t k = op_.axes.size() - 1; k-- > 0;) {
          index[k] = rest % op_.axes[k].extent;
          rest /= op_.axes[k].extent;
        }
        float* const to = grad_x + row * line;
        std::fill_n(to, line, 0.0f);
        add(0, index, grad_y + rest * op_.y_row(), to);
      }
    });
  }

 private:
  void add(size_t k, const std::vector<int64_t>& index, const float* from, float* to) const {
    if (k + 1 < op_.axes.size()) {
      for (const int32_t p : places_[k].of(index[k])) add(k + 1, index, from + p * strides_[k], to);
      return;
    }
    for (int64_t i = 0; i < op_.axes[k].extent; ++i, to += op_.run) {
      for (const int32_t p : places_[k].of(i)) {
        for (int64_t r = 0; r < op_.run; ++r) to[r] += from[p * op_.run + r];
      }
    }
  }

  const Gather& op_;
  std::vector<Places> places_;
  std::vector<int64_t> strides_;  // of y
};

/// The stored byte that represents this value exactly, if there is one.
std::optional<int32_t> stored_code(float value, const QParams& params) {
  if (!std::isfinite(value)) return std::nullopt;
  const float scale = params.scale[0];
  const int32_t zero = params.zero_point[0];
  const int32_t code = quantize(value, scale, zero, params.type.qmin(), params.type.qmax());
  if (dequantize(code, scale, zero) != value) return std::nullopt;
  return code + stored_offset(params.type);
}

}  // namespace

std::vector<Tensor> GatherNode::backward(Tensor grad_y) {
  const Shape& shape = input(0).shape();
  if (gather_ == nullptr) {
    return {shape == grad_y.shape() ? grad_y : Tensor::zeros(shape)};
  }
  Tensor grad_x = Tensor::empty(shape);
  const Floats from = grad_y.floats();
  Scatter(*gather_).run(from.data(), shape.elements(), grad_x.mutable_data());
  return {grad_x};
}

void GatherNode::refuse_integers(const std::string& layer) const {
  if (input(0).kind() != ValueKind::kCodes) Node::refuse_integers(layer);
  throw GraphError(layer,
                   type(),
                   " of ",
                   input(0).shape(),
                   " has no integer form if it changes the batch axis, or fills with a value that "
                   "no code represents: leave the first axis unchanged, and fill with 0");
}

void check_places(std::string_view operation, int64_t places) {
  if (places > std::numeric_limits<int32_t>::max())
    throw ShapeError(
        operation, "an axis that changes must have fewer than 2^31 elements, got ", places);
}

Gathered gathered(const Tensor& x, const Shape& shape, const GatherIndex& index, float fill) {
  if (x.elements() == 0 || shape.elements() == 0) {
    // Nothing moves, and `index` must not be read: if x has no elements, callers leave its lists
    // empty even for axes that change.
    return {x.shape() == shape ? TensorAccess::with_shape(x, shape) : Tensor::full(shape, fill),
            nullptr};
  }
  const auto stays = [](const std::vector<int32_t>& list) { return list.empty(); };
  if (std::all_of(index.begin(), index.end(), stays))
    return {TensorAccess::with_shape(x, shape), nullptr};
  const bool batch_stays = stays(index[0]);
  const std::span<const int64_t> extents(x.shape().begin(), x.shape().end());
  auto op = std::make_shared<Gather>(
      batch_stays ? Gather::make(Shape(extents.subspan(1)), {index.begin() + 1, index.end()})
                  : Gather::make(x.shape(), index));
  const int64_t n = batch_stays ? x.dim(0) : 1;
  const std::shared_ptr<const Codes> codes = batch_stays ? activation_codes(x) : nullptr;
  const std::optional<int32_t> byte = codes == nullptr ? std::nullopt
                                      : op->fills()    ? stored_code(fill, codes->params)
                                                       : 0;
  if (byte) {
    op->fill = *byte;
    Buffer<uint8_t> bytes(shape.elements());
    const uint8_t* const inputs[] = {codes->u8()};
    integer::Prepared(*op).run(n, inputs, bytes.data());
    auto operation = std::make_shared<const integer::Operation>(*op);
    return {computed_codes(shape, std::move(bytes), codes->params, std::move(operation)), op};
  }
  Tensor y = Tensor::empty(shape);
  const Floats from = x.floats();
  const std::vector<integer::GatherRun> runs = integer::gather_runs(op->axes.back(), op->run);
  integer::gather(*op, runs, n, from.data(), fill, y.mutable_data());
  return {std::move(y), op};
}

}  // namespace quantrain
