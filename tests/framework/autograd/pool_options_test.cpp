#include <algorithm>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/avg_pool1d.hpp"
#include "framework/autograd/ops/avg_pool2d.hpp"
#include "framework/autograd/ops/max_pool1d.hpp"
#include "framework/autograd/ops/max_pool2d.hpp"
#include "framework/autograd/ops/reshape.hpp"
#include "framework/core/error.hpp"
#include "tests/framework/autograd/codes.hpp"

// ceil_mode and count_include_pad. The expected numbers follow PyTorch's loops, written out for one
// axis: pooling_output_shape_pad_lr in aten/src/ATen/native/Pool.h, and pool_size and divide_factor
// in aten/src/ATen/native/cpu/AvgPoolKernel.cpp.
namespace quantrain {
namespace {

using test::values;

/// The elements [begin, end) of an axis that a window covers, and what its extent counts in a mean
/// that includes padding.
struct Part {
  int64_t begin, end, with_padding;
};

std::vector<Part> parts(int64_t size, int64_t kernel, int64_t stride, int64_t pad, bool ceil_mode) {
  const int64_t extra = ceil_mode ? stride - 1 : 0;
  int64_t outputs = (size + 2 * pad - (kernel - 1) - 1 + extra) / stride + 1;
  if (ceil_mode && (outputs - 1) * stride >= size + pad) --outputs;
  std::vector<Part> result;
  for (int64_t i = 0; i < outputs; ++i) {
    const int64_t start = i * stride - pad;
    const int64_t stop = std::min(start + kernel, size + pad);
    result.push_back({std::max<int64_t>(start, 0), std::min(stop, size), stop - start});
  }
  return result;
}

/// Calls f(image, row part, column part) for each window of a batch of two images.
void for_each_window(const Shape& x, const Pool2dOptions& o, const auto& f) {
  const Size2d stride{o.stride.h == 0 ? o.kernel.h : o.stride.h,
                      o.stride.w == 0 ? o.kernel.w : o.stride.w};
  for (int64_t n = 0; n < x[0]; ++n) {
    for (const Part& row : parts(x[1], o.kernel.h, stride.h, o.padding.h, o.ceil_mode)) {
      for (const Part& column : parts(x[2], o.kernel.w, stride.w, o.padding.w, o.ceil_mode))
        f(n, row, column);
    }
  }
}

int64_t divisor(const Pool2dOptions& o, const Part& row, const Part& column) {
  return o.count_include_pad ? row.with_padding * column.with_padding
                             : (row.end - row.begin) * (column.end - column.begin);
}

/// Sum and maximum of a window and channel.
struct Window {
  double sum = 0, largest = -1e30;
};
Window window_of(const Tensor& x, int64_t n, const Part& row, const Part& column, int64_t c) {
  const std::vector<float> all = values(x);
  Window result;
  for (int64_t h = row.begin; h < row.end; ++h) {
    for (int64_t w = column.begin; w < column.end; ++w) {
      const int64_t at = ((n * x.dim(1) + h) * x.dim(2) + w) * x.dim(3) + c;
      const double value = static_cast<double>(all[static_cast<size_t>(at)]);
      result.sum += value;
      result.largest = std::max(result.largest, value);
    }
  }
  return result;
}

std::vector<Pool2dOptions> option_list() {
  std::vector<Pool2dOptions> all;
  for (const int64_t kernel : {2, 3, 4}) {
    for (const int64_t stride : {1, 2, 3, 5}) {
      for (const int64_t padding : {0, 1, 2}) {
        if (padding >= kernel) continue;
        for (const int flags : {1, 2, 3}) {
          all.push_back({.kernel = {kernel, 3},
                         .stride = {stride, 2},
                         .padding = {padding, 1},
                         .ceil_mode = (flags & 1) != 0,
                         .count_include_pad = (flags & 2) != 0});
        }
      }
    }
  }
  // Kernels that are larger than the padded image or leave a window of padding alone in PyTorch.
  all.push_back({.kernel = {9, 8}, .stride = 4, .padding = {1, 0}, .ceil_mode = true});
  all.push_back({.kernel = {9, 8},
                 .stride = 4,
                 .padding = {1, 0},
                 .ceil_mode = true,
                 .count_include_pad = true});
  return all;
}

Pool2dOptions without_padding_counted(Pool2dOptions options) {
  options.count_include_pad = false;
  return options;
}

}  // namespace

TEST_CASE("ceil_mode and count_include_pad follow PyTorch's loops", "[autograd][pool2d]") {
  const Tensor x = test::random_tensor({2, 6, 7, 3}, 4);
  for (const Pool2dOptions& o : option_list()) {
    CAPTURE(o.kernel.h, o.stride.h, o.padding.h, o.ceil_mode, o.count_include_pad);
    std::vector<double> means, maxima;
    for_each_window(x.shape(), o, [&](int64_t n, const Part& row, const Part& column) {
      for (int64_t c = 0; c < 3; ++c) {
        const Window window = window_of(x, n, row, column, c);
        means.push_back(window.sum / static_cast<double>(divisor(o, row, column)));
        maxima.push_back(window.largest);
      }
    });
    const std::vector<float> mean = values(avg_pool2d(x, o));
    const std::vector<float> most = values(max_pool2d(x, without_padding_counted(o)));
    REQUIRE(mean.size() == means.size());
    REQUIRE(most.size() == maxima.size());
    for (size_t i = 0; i < means.size(); ++i) {
      REQUIRE(std::abs(static_cast<double>(mean[i]) - means[i]) < 1e-6);
      REQUIRE(static_cast<double>(most[i]) == maxima[i]);
    }
  }
}

TEST_CASE("a mean that counts padding divides by the window, at its end by the padded image",
          "[autograd][avg_pool1d]") {
  const Tensor x = test::make_tensor({1, 4, 1}, {2, 4, 6, 8});
  const Pool1dOptions options{.kernel = 3, .stride = 2, .padding = 1};
  const auto with = [&](bool ceil_mode, bool count) {
    Pool1dOptions all = options;
    all.ceil_mode = ceil_mode;
    all.count_include_pad = count;
    return values(avg_pool1d(x, all));
  };
  CHECK(with(false, false) == std::vector<float>{3, 6});
  CHECK(with(false, true) == std::vector<float>{2, 6});
  // The third window covers 8 and one zero; a further element would be beyond the padding.
  CHECK(with(true, false) == std::vector<float>{3, 6, 8});
  CHECK(with(true, true) == std::vector<float>{2, 6, 4});
  CHECK(values(max_pool1d(x, {.kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true})) ==
        std::vector<float>{4, 8, 8});
  // A window that would begin in the padding at the end is left out.
  CHECK(max_pool1d(x, {.kernel = 2, .stride = 5, .padding = 1, .ceil_mode = true}).dim(1) == 1);
  // Signals are images of one row.
  const Tensor signal = test::random_tensor({2, 9, 5}, 1);
  const Tensor image = reshape(signal, {2, 1, 9, 5});
  for (const bool ceil_mode : {false, true}) {
    const Pool1dOptions one{4, 3, 2, ceil_mode, true};
    const Pool2dOptions two{{1, 4}, {1, 3}, {0, 2}, ceil_mode, true};
    CHECK(values(avg_pool1d(signal, one)) == values(avg_pool2d(image, two)));
  }
}

TEST_CASE("gradients of pools with ceil_mode and count_include_pad match finite differences",
          "[autograd][pool2d]") {
  const Tensor x = test::spread_leaf({2, 6, 5, 2}, 1);
  for (const bool ceil_mode : {false, true}) {
    Pool2dOptions options{{4, 3}, {3, 2}, {1, 0}, ceil_mode, false};
    test::check_gradient([&] { return max_pool2d(x, options); }, {x});
    for (const bool count : {false, true}) {
      options.count_include_pad = count;
      test::check_gradient([&] { return avg_pool2d(x, options); }, {x});
    }
  }
}

TEST_CASE("pools of codes with ceil_mode and count_include_pad round once, by (10)",
          "[autograd][pool2d][integer]") {
  const Recording recording;  // keeps padded codes, which only the pool reads
  for (const QType& type : test::activation_types()) {
    const int32_t zero = test::zero_of(type);
    const Tensor x = test::activations({2, 6, 7, 3}, type, 0.0625f, zero, 1);
    for (const Pool2dOptions& o : option_list()) {
      CAPTURE(o.kernel.h, o.stride.h, o.padding.h, o.ceil_mode, o.count_include_pad);
      const Tensor y = avg_pool2d(x, o);
      const Tensor z = avg_pool2d(test::as_floats(x).set_requires_grad(true), o);
      CHECK(values(y) == values(z));  // the float sums are exact, too
      test::check_same_gradient(y, z);
      const QParams to = test::activation_params(type, 0.05f, zero);
      std::vector<int64_t> unclamped;
      for_each_window(x.shape(), o, [&](int64_t n, const Part& row, const Part& column) {
        const double count = static_cast<double>(divisor(o, row, column));
        const Multiplier m =
            make_multiplier(test::scale_of(x) / (count * static_cast<double>(to.scale[0])));
        for (int64_t c = 0; c < 3; ++c) {
          const double sum = window_of(x, n, row, column, c).sum / 0.0625;
          unclamped.push_back(rounding_shift(static_cast<int64_t>(sum) * m.m0, m.shift) + zero);
        }
      });
      test::check_requantize(y, to, unclamped);
      const Pool2dOptions max = without_padding_counted(o);
      CHECK(values(max_pool2d(x, max)) == values(max_pool2d(test::as_floats(x), max)));
      CHECK(max_pool2d(x, max).kind() == ValueKind::kCodes);
    }
  }
}

TEST_CASE("pools record how far windows reach and what they divide by", "[autograd][pool2d]") {
  const Tensor x = test::random_leaf({1, 6, 7, 1}, 1);
  const Tensor y = max_pool2d(x, {.kernel = 3, .stride = 2, .ceil_mode = true});
  CHECK(y.node()->attributes().integers("end") == std::vector<int64_t>{1, 0});
  const Tensor z = avg_pool2d(x, {.kernel = 3, .padding = 1, .count_include_pad = true});
  CHECK(z.node()->attributes().integer("divisor") == 9);
  // Without padding there is nothing to count.
  const Tensor w = avg_pool2d(x, {.kernel = 3, .count_include_pad = true});
  CHECK(w.node()->attributes() == avg_pool2d(x, {.kernel = 3}).node()->attributes());
}

TEST_CASE("max pools refuse count_include_pad, and pools refuse kernels that ceil_mode cannot fit",
          "[autograd][pool2d]") {
  const Tensor x = Tensor::zeros({1, 4, 4, 1});
  QUANTRAIN_CHECK_ERROR(
      max_pool2d(x, {.kernel = 2, .count_include_pad = true}),
      ShapeError,
      "[max_pool2d] a maximum counts no elements: count_include_pad is for average pools");
  QUANTRAIN_CHECK_ERROR(
      max_pool1d(Tensor::zeros({1, 4, 1}), {.kernel = 2, .count_include_pad = true}),
      ShapeError,
      "[max_pool1d] a maximum counts no elements");
  QUANTRAIN_CHECK_ERROR(max_pool2d(x, {.kernel = 6, .stride = 2, .ceil_mode = true}),
                        ShapeError,
                        "the kernel is larger than the padded image");
  CHECK(max_pool2d(x, {.kernel = 5, .stride = 2, .ceil_mode = true}).elements() == 1);
}

}  // namespace quantrain
