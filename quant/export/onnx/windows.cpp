#include <algorithm>

#include "quant/export/onnx/exact.hpp"
#include "quant/export/onnx/fixed_point.hpp"
#include "quant/export/onnx/forms.hpp"

// Pools in integer operators.   docs/quantization.md (10)
namespace quantrain::onnx_export {
namespace {

/// Padding after the last element, for the windows that there are.
int64_t end(int64_t extent, int64_t window, int64_t stride, int64_t padding, int64_t outputs) {
  return std::max<int64_t>((outputs - 1) * stride + window - extent - padding, 0);
}

}  // namespace

std::vector<int64_t> pads(const kernels::Conv2dShape& s) {
  return {s.pad_h,
          s.pad_w,
          end(s.h, s.window_h(), s.stride_h, s.pad_h, s.oh()),
          end(s.w, s.window_w(), s.stride_w, s.pad_w, s.ow())};
}

std::vector<onnx::Attribute> window_attributes(const kernels::Conv2dShape& s) {
  using Pair = std::vector<int64_t>;
  return {{"kernel_shape", Pair{s.kh, s.kw}},
          {"strides", Pair{s.stride_h, s.stride_w}},
          {"pads", pads(s)}};
}

std::vector<onnx::Attribute> convolution_attributes(const kernels::Conv2dShape& s) {
  std::vector<onnx::Attribute> attributes = window_attributes(s);
  attributes.push_back({"dilations", std::vector<int64_t>{s.dilation_h, s.dilation_w}});
  attributes.push_back({"group", s.groups});
  return attributes;
}

Form input_image(const kernels::Conv2dShape& s) { return image_form(s.h, s.w, s.c); }
Form output_image(const kernels::Conv2dShape& s) { return image_form(s.oh(), s.ow(), s.o); }

void exact_max_pool(Export& out, const integer::QuantizedMaxPool2d& op, int x, int y) {
  const std::string pooled = out.graph.node(
      "MaxPool", {out.values.get(x, input_image(op.shape))}, window_attributes(op.shape));
  out.values.set(y, output_image(op.shape), pooled);
}

// Sums are convolutions of each channel by ones. The channels become samples, because grouped
// integer convolutions are slow.
void exact_avg_pool(Export& out, const integer::QuantizedAvgPool2d& op, int x, int y) {
  const kernels::Conv2dShape& s = op.shape;
  const std::string image = out.values.get(x, input_image(s));
  const std::string channels = s.c == 1 ? image : add_reshape(out.graph, image, {1, s.h, s.w}, -1);
  const std::vector<uint8_t> ones(static_cast<size_t>(s.kh * s.kw), 1);
  std::string sum = out.graph.node("ConvInteger",
                                   {channels,
                                    out.graph.constant<uint8_t>({1, 1, s.kh, s.kw}, ones, "ones"),
                                    out.graph.scalar(static_cast<uint8_t>(op.zero_x))},
                                   window_attributes(s));
  if (s.c > 1) sum = add_reshape(out.graph, sum, {s.c, s.oh(), s.ow()}, -1);
  Requantize r{
      .dims = {s.oh(), s.ow()}, .m0 = {}, .shift = {}, .bound = 255 * s.kh * s.kw, .y = op.y};
  std::vector<int64_t> rows = integer::counts_along(s.h, s.kh, s.stride_h, s.pad_h, s.oh());
  std::vector<int64_t> columns = integer::counts_along(s.w, s.kw, s.stride_w, s.pad_w, s.ow());
  if (op.means.size() == 1) {  // one multiplier for all pixels
    rows.resize(1);
    columns.resize(1);
  }
  const auto less = [](const kernels::MeanMultiplier& m, int64_t count) { return m.count < count; };
  for (const int64_t row : rows) {
    for (const int64_t column : columns) {
      const auto mean = std::lower_bound(op.means.begin(), op.means.end(), row * column, less);
      r.m0.push_back(mean->multiplier.m0);
      r.shift.push_back(mean->multiplier.shift);
    }
  }
  out.values.set(y, output_image(s), requantize(out.graph, sum, std::move(r)));
}

}  // namespace quantrain::onnx_export
