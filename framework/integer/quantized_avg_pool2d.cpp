#include "framework/integer/quantized_avg_pool2d.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "framework/core/error.hpp"
#include "framework/integer/quantized_product.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain::integer {
namespace {

int64_t count_at(int64_t i, int64_t extent, int64_t kernel, int64_t stride, int64_t padding) {
  const int64_t first = i * stride - padding;
  return std::min(first + kernel, extent) - std::max<int64_t>(first, 0);
}

/// The distinct numbers that counts_along() returns, at most kMostCounts + 1 of them.
std::set<int64_t> distinct_counts(
    int64_t extent, int64_t kernel, int64_t stride, int64_t padding, int64_t outputs) {
  std::set<int64_t> counts;
  for (int64_t i = 0; i < outputs && std::ssize(counts) <= QuantizedAvgPool2d::kMostCounts; ++i)
    counts.insert(count_at(i, extent, kernel, stride, padding));
  return counts;
}

}  // namespace

std::vector<int64_t> counts_along(
    int64_t extent, int64_t kernel, int64_t stride, int64_t padding, int64_t outputs) {
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < outputs; ++i)
    counts.push_back(count_at(i, extent, kernel, stride, padding));
  return counts;
}

std::vector<int64_t> window_counts(const kernels::Conv2dShape& s, std::string_view where) {
  const std::set<int64_t> rows = distinct_counts(s.h, s.kh, s.stride_h, s.pad_h, s.oh());
  const std::set<int64_t> columns = distinct_counts(s.w, s.kw, s.stride_w, s.pad_w, s.ow());
  if (std::ssize(rows) * std::ssize(columns) > QuantizedAvgPool2d::kMostCounts) {
    throw ShapeError(where,
                     "kernel [",
                     s.kh,
                     ", ",
                     s.kw,
                     "] with padding [",
                     s.pad_h,
                     ", ",
                     s.pad_w,
                     "] has windows of more than ",
                     QuantizedAvgPool2d::kMostCounts,
                     " different sizes inside the image: pad less");
  }
  std::set<int64_t> counts;
  for (const int64_t row : rows) {
    for (const int64_t column : columns) counts.insert(row * column);
  }
  return {counts.begin(), counts.end()};
}

QuantizedAvgPool2d QuantizedAvgPool2d::make(const kernels::Conv2dShape& shape,
                                            const QParams& x,
                                            const QParams& y,
                                            Activation activation,
                                            int64_t divisor) {
  check_activation(x, "avg_pool2d");
  QuantizedAvgPool2d op{.shape = shape,
                        .zero_x = stored_zero_point(x),
                        .means = {},
                        .y = stored_output(y, activation)};
  op.shape.n = 1;
  for (const int64_t count : window_counts(shape))
    op.means.push_back(
        {count, mean_multiplier(x.scale[0], divisor > 0 ? divisor : count, y.scale[0])});
  return op;
}

QuantizedAvgPool2d QuantizedAvgPool2d::make_mean_of_codes(const kernels::Conv2dShape& shape,
                                                          const QParams& x,
                                                          Activation activation) {
  QuantizedAvgPool2d op = make(shape, x, x, activation);
  op.zero_x = op.y.zero_point = stored_offset(x.type);
  for (kernels::MeanMultiplier& mean : op.means) {
    if (mean.count > kMostMeanCodes)
      throw ShapeError("avg_pool2d",
                       "a mean of ",
                       mean.count,
                       " codes may round ties to either side: at most ",
                       kMostMeanCodes);
    mean.multiplier = code_mean_multiplier(mean.count);
  }
  return op;
}

bool QuantizedAvgPool2d::means_codes() const {
  bool result = zero_x == y.zero_point;
  for (const kernels::MeanMultiplier& mean : means) {
    result = result && mean.count <= kMostMeanCodes &&
             mean.multiplier == code_mean_multiplier(mean.count);
  }
  return result;
}

void QuantizedAvgPool2d::validate(std::string_view where) const {
  check_pool(where, shape);
  if (shape.kh * shape.kw > kLargestWindow) {
    throw QuantError(where,
                     "the sum over a window of ",
                     shape.kh * shape.kw,
                     " elements could overflow: at most ",
                     kLargestWindow);
  }
  validate_zero_point(zero_x, where);
  const std::vector<int64_t> counts = window_counts(shape, where);
  if (means.size() != counts.size())
    throw QuantError(where,
                     "expected a multiplier for each of the ",
                     counts.size(),
                     " window sizes, got ",
                     means.size());
  for (size_t i = 0; i < counts.size(); ++i) {
    if (means[i].count != counts[i])
      throw QuantError(where,
                       "multiplier ",
                       i,
                       " is for windows of ",
                       means[i].count,
                       " elements, expected ",
                       counts[i],
                       ": multipliers must be in ascending order of window size");
  }
  for (const kernels::MeanMultiplier& mean : means) integer::validate(mean.multiplier, where);
  integer::validate(y, where);
}

Channels QuantizedAvgPool2d::output_channels(InputChannels inputs) const {
  Channels result = over(*inputs[0], shape.c);
  for (Interval& channel : result) {
    const Interval x = channel;
    for (const kernels::MeanMultiplier& mean : means) {
      const Interval codes = through(x, [&](int64_t q) {
        const int64_t sum = mean.count * (q - zero_x);
        return requantize(static_cast<int32_t>(sum), mean.multiplier, y.zero_point, y.lo, y.hi);
      });
      channel = &mean == &means[0] ? codes : channel.joined(codes);
    }
  }
  return result;
}

void Prepared<QuantizedAvgPool2d>::run(int64_t n, Inputs inputs, void* output) const {
  kernels::avg_pool2d_u8(with_batch(op_->shape, n),
                         inputs[0],
                         op_->zero_x,
                         op_->means,
                         op_->y,
                         static_cast<uint8_t*>(output));
}

void Prepared<QuantizedAvgPool2d>::accumulate(int64_t n, const uint8_t* x, int32_t* sums) const {
  kernels::sum_pool2d_u8_s32(with_batch(op_->shape, n), x, op_->zero_x, sums);
}

}  // namespace quantrain::integer
