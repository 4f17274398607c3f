#include <algorithm>

#include "framework/integer/sizes.hpp"
#include "quant/import/tflite/windows.hpp"

// AVERAGE_POOL_2D, MAX_POOL_2D, MEAN and SOFTMAX.
namespace quantrain::tflite {
namespace {

struct Side {
  int64_t before, more_after;
};

Side same_padding(int64_t size, int64_t window, int64_t stride) {
  const int64_t outputs = (size + stride - 1) / stride;
  const int64_t padding = std::max<int64_t>((outputs - 1) * stride + window - size, 0);
  return {padding / 2, padding % 2};
}

kernels::Conv2dShape pool_shape(Lowering& l) {
  const Dims image = l.image_dims(l.input(0));
  kernels::Conv2dShape s{.h = image[1], .w = image[2], .c = image[3]};
  s.o = s.groups = s.c;
  s.kw = l.options().get<int32_t>(3, 0);
  s.kh = l.options().get<int32_t>(4, 0);
  set_window(l, s);
  integer::check_pool("pool", s);
  check_window_output(l, s);
  l.spend(s.oh() + s.ow());  // the sizes of all windows are computed
  return s;
}

integer::QuantizedAvgPool2d average(const Lowering& l,
                                    const kernels::Conv2dShape& s,
                                    Fused activation) {
  const QParams x = l.input_params(0);
  auto op = l.keeps_params()
                ? integer::QuantizedAvgPool2d::make_mean_of_codes(s, x, Activation::kNone)
                : integer::QuantizedAvgPool2d::make(s, x, l.output_params(), Activation::kNone);
  const StoredOutput y = l.stored(activation);
  op.y.lo = y.lo;
  op.y.hi = y.hi;
  return op;
}

}  // namespace

int64_t elements_of(const Dims& dims) {
  int64_t elements = 1;
  for (const int64_t extent : dims) elements *= extent;
  return elements;
}

void set_window(const Lowering& l, kernels::Conv2dShape& s) {
  s.stride_w = l.options().get<int32_t>(1, 0);
  s.stride_h = l.options().get<int32_t>(2, 0);
  // Checked before the padding is computed from these numbers.
  for (const int64_t extent : {s.stride_w, s.stride_h, s.kh, s.kw, s.dilation_h, s.dilation_w}) {
    if (extent < 1 || extent > integer::kMostExtent)
      throw Refusal{"with a kernel, stride or dilation of " + std::to_string(extent)};
  }
  const bool is_same = l.options().get<int8_t>(0, 0) == 0;
  if (!is_same) return;
  const Side h = same_padding(s.h, s.window_h(), s.stride_h);
  const Side w = same_padding(s.w, s.window_w(), s.stride_w);
  s.pad_h = h.before;
  s.end_h = h.more_after;
  s.pad_w = w.before;
  s.end_w = w.more_after;
}

void check_window_output(const Lowering& l, const kernels::Conv2dShape& s) {
  integer::check_window("window", s);
  const Dims y = l.output_dims();
  if (y != Dims{1, s.oh(), s.ow(), s.o})
    throw Refusal{"whose output is not [1, " + std::to_string(s.oh()) + ", " +
                  std::to_string(s.ow()) + ", " + std::to_string(s.o) + "]"};
}

void lower_average_pool(Lowering& l) {
  const auto op = average(l, pool_shape(l), l.fused(5));
  l.emit(op, {l.value(0)});
}

void lower_max_pool(Lowering& l) {
  const QParams x = l.input_params(0);
  const integer::QuantizedMaxPool2d op{pool_shape(l)};
  const StoredOutput y = l.stored(l.fused(5));
  if (l.keeps_params() && y == stored_output(x, Activation::kNone)) return l.emit(op, {l.value(0)});
  l.emit_rescaled(l.emit_between(op, {l.value(0)}, x), y);
}

void lower_mean(Lowering& l) {
  const Dims x = l.input_dims(0);
  std::vector<bool> reduced(x.size(), false);
  for (const int64_t axis : l.constant(1)) reduced[static_cast<size_t>(l.axis(axis, x))] = true;
  // Rows are the axes before the reduced ones, channels those after them. Axes of extent 1 may be
  // either.
  int64_t rows = 1, columns = 1, channels = 1;
  for (size_t k = 0; k < x.size(); ++k) {
    if (x[k] == 1) continue;
    if (reduced[k] && channels > 1) throw Refusal{"over axes with another axis between them"};
    (reduced[k] ? columns : columns > 1 ? channels : rows) *= x[k];
  }
  kernels::Conv2dShape s{.h = rows, .w = columns, .c = channels, .o = channels};
  s.kw = s.stride_w = columns;
  s.groups = channels;
  if (columns == 1) {  // nothing is averaged
    l.input_params(0);
    return l.emit_rescaled(l.value(0), l.stored(Fused::kNone));
  }
  integer::check_pool("mean", s);
  const auto op = average(l, s, Fused::kNone);
  l.emit(op, {l.value(0)});
}

void lower_softmax(Lowering& l) {
  const Dims x = l.input_dims(0);
  QParams params = l.input_params(0);
  const float beta = l.options().get<float>(0, 0.0f);
  if (x.empty() || !(beta > 0.0f)) throw Refusal{"without axes, or with beta of 0 or less"};
  params.scale[0] *= beta;
  const int64_t classes = x.back();
  auto op = integer::QuantizedSoftmax::make(
      elements_of(x) / classes, classes, params, l.output_params(), Activation::kNone);
  l.emit(op, {l.value(0)});
}

}  // namespace quantrain::tflite
