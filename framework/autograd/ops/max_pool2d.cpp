#include "framework/autograd/ops/max_pool2d.hpp"

#include <algorithm>

#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/elementwise.hpp"
#include "framework/kernels/integer.hpp"

namespace quantrain {
namespace {

/// Index in x of the largest code of each window, the first among equals.
Buffer<int32_t> winners(const kernels::Conv2dShape& s, const uint8_t* x) {
  Buffer<int32_t> index(s.y_elements());
  parallel_for(s.n * s.oh(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t top = row % s.oh() * s.stride_h - s.pad_h;
      for (int64_t column = 0; column < s.ow(); ++column) {
        const int64_t left = column * s.stride_w - s.pad_w;
        int32_t* const best = index.data() + (row * s.ow() + column) * s.c;
        std::fill_n(best, s.c, -1);
        for (int64_t h = std::max<int64_t>(top, 0); h < std::min(top + s.kh, s.h); ++h) {
          for (int64_t w = std::max<int64_t>(left, 0); w < std::min(left + s.kw, s.w); ++w) {
            const auto from = static_cast<int32_t>(((row / s.oh() * s.h + h) * s.w + w) * s.c);
            for (int32_t c = 0; c < s.c; ++c) {
              if (best[c] < 0 || x[from + c] > x[best[c]]) best[c] = from + c;
            }
          }
        }
      }
    }
  });
  return index;
}

class MaxPool2d : public Node {
 public:
  MaxPool2d(const kernels::Conv2dShape& shape, Buffer<int32_t> index)
      : shape_(shape), index_(std::move(index)) {}
  std::string_view type() const override { return "max_pool2d"; }
  Attributes attributes() const override { return pool2d_attributes(shape_); }
  std::vector<Tensor> backward(const Tensor& grad_y) override {
    Tensor grad_x = Tensor::empty(input(0).shape());
    const std::shared_ptr<const Codes> codes = activation_codes(input(0));
    const Buffer<int32_t> found = codes ? winners(shape_, codes->u8()) : Buffer<int32_t>();
    const int32_t* const index = codes ? found.data() : index_.data();
    kernels::max_pool2d_backward_f32(shape_, grad_y.floats(), index, grad_x.mutable_data());
    return {grad_x};
  }

 private:
  kernels::Conv2dShape shape_;
  Buffer<int32_t> index_;  // of the element that won; codes, one byte each, are asked again instead
};

}  // namespace

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options) {
  const kernels::Conv2dShape s = pool2d_shape("max_pool2d", x.shape(), options);
  const Shape shape{s.n, s.oh(), s.ow(), s.c};
  if (const std::shared_ptr<const Codes> codes = activation_codes(x)) {
    auto largest = std::make_shared<Codes>();
    largest->bytes = Buffer<uint8_t>(shape.elements());
    largest->params = codes->params;
    kernels::max_pool2d_u8(s, codes->u8(), largest->bytes.data());
    return record<MaxPool2d>(
        Tensor::from_codes(shape, std::move(largest)), {x}, s, Buffer<int32_t>());
  }
  Tensor y = Tensor::empty(shape);
  Buffer<int32_t> index;
  if (needs_gradient({x})) index = Buffer<int32_t>(y.elements());
  kernels::max_pool2d_f32(s, x.floats(), y.mutable_data(), index.data());
  return record<MaxPool2d>(std::move(y), {x}, s, std::move(index));
}

}  // namespace quantrain
