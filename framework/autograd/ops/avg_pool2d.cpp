#include "framework/autograd/ops/avg_pool2d.hpp"

#include <limits>

#include "framework/autograd/ops/mean_of_codes.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/elementwise.hpp"

namespace quantrain {
namespace {

class AvgPool2d : public Node {
 public:
  explicit AvgPool2d(const kernels::Conv2dShape& shape) : shape_(shape) {}
  std::string_view type() const override { return "avg_pool2d"; }
  Attributes attributes() const override { return pool2d_attributes(shape_); }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    Tensor grad_x = Tensor::empty(input(0).shape());
    kernels::avg_pool2d_backward_f32(shape_, grad_y.floats(), grad_x.mutable_data());
    return {grad_x};
  }

 private:
  kernels::Conv2dShape shape_;
};

}  // namespace

Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options) {
  const kernels::Conv2dShape s = pool2d_shape("avg_pool2d", x.shape(), options);
  const Shape shape{s.n, s.oh(), s.ow(), s.c};
  if (std::shared_ptr<const Codes> codes = activation_codes(x)) {
    if (s.kh > std::numeric_limits<int32_t>::max() / 255 / s.kw) {
      throw QuantError(
          "avg_pool2d", "sums of ", s.kh * s.kw, " codes could overflow 32 bits: x ", x.shape());
    }
    auto mean = std::make_shared<MeanOfCodes>(s, std::move(codes));
    return record<AvgPool2d>(Tensor::from_accumulators(shape, std::move(mean)), {x}, s);
  }
  Tensor y = Tensor::empty(shape);
  kernels::avg_pool2d_f32(s, x.floats(), y.mutable_data());
  return record<AvgPool2d>(std::move(y), {x}, s);
}

Tensor global_avg_pool2d(const Tensor& x) {
  if (x.rank() != 4 || x.dim(1) < 1 || x.dim(2) < 1) {
    throw ShapeError("global_avg_pool2d", "x is not [N, H, W, C] with an image: ", x.shape());
  }
  return avg_pool2d(x, {.kernel = {x.dim(1), x.dim(2)}});
}

}  // namespace quantrain
