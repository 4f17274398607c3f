#include "framework/kernels/float/conv.hpp"

#include <algorithm>

#include "tests/framework/kernels/guarded.hpp"
#include "tests/framework/kernels/kernel_testing.hpp"

namespace quantrain::kernels {
namespace {

using test::check_everywhere;
using test::Guarded;
using test::random_floats;
using test::RoundingTolerance;

/// Calls f(index in x, in w, in y) for every product of the convolution.
template <class F>
void for_products(const Conv2dShape& s, F&& f) {
  const int64_t gc = s.group_c();
  for (int64_t pixel = 0; pixel < s.n * s.oh() * s.ow(); ++pixel) {
    for (int64_t tap = 0; tap < s.kh * s.kw; ++tap) {
      const int64_t u = pixel / s.ow() % s.oh() * s.stride_h - s.pad_h + tap / s.kw * s.dilation_h;
      const int64_t v = pixel % s.ow() * s.stride_w - s.pad_w + tap % s.kw * s.dilation_w;
      if (u < 0 || u >= s.h || v < 0 || v >= s.w) continue;
      const int64_t first = ((pixel / (s.oh() * s.ow()) * s.h + u) * s.w + v) * s.c;
      for (int64_t o = 0; o < s.o; ++o) {
        for (int64_t c = 0; c < gc; ++c) {
          f(first + o / s.group_o() * gc + c, (o * s.kh * s.kw + tap) * gc + c, pixel * s.o + o);
        }
      }
    }
  }
}

std::vector<float> rounded(const std::vector<double>& values) {
  std::vector<float> result(values.size());
  std::transform(
      values.begin(), values.end(), result.begin(), [](double v) { return static_cast<float>(v); });
  return result;
}

void check_conv(const Conv2dShape& s) {
  INFO("n " << s.n << " h " << s.h << " w " << s.w << " c " << s.c << " o " << s.o << " kernel "
            << s.kh << "x" << s.kw << " stride " << s.stride_h << "," << s.stride_w << " pad "
            << s.pad_h << "," << s.pad_w << " groups " << s.groups << " dilation " << s.dilation_h
            << "," << s.dilation_w);
  const std::vector<float> x = random_floats(s.x_elements(), 1);
  const std::vector<float> w = random_floats(s.weight_elements(), 2);
  const std::vector<float> grad_y = random_floats(s.y_elements(), 3);
  const std::vector<float> bias = random_floats(s.o, 4);
  std::vector<double> y(grad_y.size());
  std::vector<double> grad_x(x.size());
  std::vector<double> grad_w(w.size());
  for_products(s, [&](int64_t i, int64_t j, int64_t k) {
    const auto from = static_cast<size_t>(i);
    const auto weight = static_cast<size_t>(j);
    const auto to = static_cast<size_t>(k);
    y[to] += static_cast<double>(x[from]) * static_cast<double>(w[weight]);
    grad_x[from] += static_cast<double>(grad_y[to]) * static_cast<double>(w[weight]);
    grad_w[weight] += static_cast<double>(grad_y[to]) * static_cast<double>(x[from]);
  });
  const Guarded from(x);
  const Guarded weights(w);
  const Guarded grad(grad_y);
  check_everywhere(rounded(y), RoundingTolerance{}, [&] {
    Guarded result(std::vector<float>(y.size()));
    conv2d_f32(s, from.data(), weights.data(), result.data());
    return result.values();
  });
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] +=
        static_cast<double>(grad_y[i]) + static_cast<double>(bias[i % static_cast<size_t>(s.o)]);
    y[i] = std::max(y[i], 0.0);
  }
  check_everywhere(rounded(y), RoundingTolerance{}, [&] {
    Guarded result(grad_y);
    const PackedWeightsF32 packed(s, weights.data());
    conv2d_f32(s, from.data(), packed, result.data(), {bias.data(), Activation::kRelu, true});
    return result.values();
  });
  check_everywhere(rounded(grad_x), RoundingTolerance{}, [&] {
    Guarded result(std::vector<float>(x.size(), -1.0f));
    conv2d_backward_data_f32(s, grad.data(), weights.data(), result.data());
    return result.values();
  });
  check_everywhere(rounded(grad_w), RoundingTolerance{}, [&] {
    Guarded result(std::vector<float>(w.size(), -1.0f));
    conv2d_backward_weights_f32(s, from.data(), grad.data(), result.data());
    return result.values();
  });
}

Conv2dShape shape(int64_t n, int64_t h, int64_t w, int64_t c, int64_t o, int64_t kh, int64_t kw) {
  Conv2dShape s;
  s.n = n;
  s.h = h;
  s.w = w;
  s.c = c;
  s.o = o;
  s.kh = kh;
  s.kw = kw;
  return s;
}

TEST_CASE("convolutions and their gradients equal the obvious loop", "[kernels][conv]") {
  check_conv(shape(1, 1, 1, 1, 1, 1, 1));
  check_conv(shape(2, 5, 6, 3, 7, 3, 2));
  check_conv(shape(3, 9, 8, 1, 16, 3, 3));
  check_conv(shape(2, 7, 7, 16, 32, 3, 3));
  check_conv(shape(2, 6, 5, 17, 33, 1, 1));
  check_conv(shape(1, 8, 9, 5, 70, 5, 3));
  check_conv(shape(70, 8, 6, 1, 4, 3, 3));  // one task has more segments than one kernel call takes
}

TEST_CASE("convolutions pad with zeros, even if a window covers only padding", "[kernels][conv]") {
  for (const int64_t pad_h : {0, 1, 3}) {
    for (const int64_t pad_w : {0, 1, 2}) {
      Conv2dShape s = shape(2, 5, 7, 4, 9, 3, 3);
      s.pad_h = pad_h;
      s.pad_w = pad_w;
      check_conv(s);
    }
  }
}

TEST_CASE("convolutions accept strides whether or not they divide the image", "[kernels][conv]") {
  for (const int64_t stride_h : {1, 2, 3}) {
    for (const int64_t stride_w : {1, 2, 4}) {
      for (const int64_t pad : {0, 1}) {
        Conv2dShape s = shape(2, 8, 9, 3, 16, 3, 3);
        s.stride_h = stride_h;
        s.stride_w = stride_w;
        s.pad_h = s.pad_w = pad;
        check_conv(s);
        s.kh = s.kw = 1;
        check_conv(s);
      }
    }
  }
}

TEST_CASE("convolutions use exactly the taps inside the image for any kernel, stride and padding",
          "[kernels][conv][serial]") {
  for (const int64_t kernel : {1, 2, 3, 5}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t pad : {0, 1, 2, 4}) {
        for (const int64_t size : {1, 4, 7}) {
          if (size + 2 * pad < kernel) continue;
          Conv2dShape s = shape(2, size, size + 1, 2, 3, kernel, kernel);
          s.stride_h = s.stride_w = stride;
          s.pad_h = s.pad_w = pad;
          check_conv(s);
        }
      }
    }
  }
}

TEST_CASE("convolutions in groups read only the channels of their group", "[kernels][conv]") {
  for (const int64_t groups : {2, 3, 6}) {
    Conv2dShape s = shape(2, 6, 6, 6, 12, 3, 3);
    s.groups = groups;
    s.pad_h = s.pad_w = 1;
    check_conv(s);
    s.stride_h = s.stride_w = 2;
    check_conv(s);
  }
}

TEST_CASE("convolutions of few pixels work on whole vectors of channels, also in groups",
          "[kernels][conv]") {
  for (const int64_t kernel : {2, 3, 5}) {
    for (const int64_t stride : {1, 2, 3}) {
      Conv2dShape s = shape(1, 6, 7, 32, 10, kernel, kernel);
      s.groups = 2;
      s.stride_h = s.stride_w = stride;
      s.pad_h = s.pad_w = kernel / 2;
      check_conv(s);
    }
  }
  check_conv(shape(1, 5, 5, 80, 6, 3, 2));
}

TEST_CASE("depthwise convolutions equal the obvious loop", "[kernels][conv]") {
  for (const int64_t channels : {2, 15, 16, 17, 40}) {
    for (const int64_t stride : {1, 2}) {
      for (const int64_t pad : {0, 1, 3}) {
        Conv2dShape s = shape(2, 7, 5, channels, channels, 3, 3);
        s.groups = channels;
        s.stride_h = s.stride_w = stride;
        s.pad_h = s.pad_w = pad;
        check_conv(s);
      }
    }
  }
  // The cases are whole tiles along rows and down columns, image rows whose sums take several
  // chains, strides larger than the image, and channels of blocks, vectors and a partial vector.
  struct Image {
    int64_t h, w, channels, kh, kw, stride, pad;
  };
  for (const Image& x : {Image{5, 23, 40, 3, 5, 1, 2},
                         Image{5, 39, 17, 3, 5, 2, 2},
                         Image{27, 3, 16, 3, 3, 1, 1},
                         Image{41, 3, 17, 5, 2, 2, 1},
                         Image{40, 1, 18, 9, 1, 1, 4},
                         Image{3, 300, 3, 3, 3, 1, 1},
                         Image{40, 3, 2, 2, 2, 50, 1},
                         Image{2, 40, 2, 1, 1, 41, 0},
                         Image{6, 9, 27, 3, 3, 1, 1},
                         Image{3, 3, 147, 3, 3, 1, 1},
                         Image{6, 20, 27, 5, 3, 2, 1},
                         Image{7, 20, 31, 4, 3, 1, 1}}) {
    Conv2dShape s = shape(2, x.h, x.w, x.channels, x.channels, x.kh, x.kw);
    s.groups = x.channels;
    s.stride_h = s.stride_w = x.stride;
    s.pad_h = x.pad;
    s.pad_w = x.kw > 1 ? x.pad : 0;
    check_conv(s);
  }
}

Conv2dShape depthwise_shape(int64_t n, int64_t h, int64_t w, int64_t channels, int64_t kernel) {
  Conv2dShape s = shape(n, h, w, channels, channels, 3, kernel);
  s.groups = channels;
  s.pad_h = 1;
  return s;
}

TEST_CASE("depthwise convolutions of any width split their lines into tiles",
          "[kernels][conv][serial]") {
  // To keep the test short, each pair of width and padding is tested with only one of these channel
  // counts.
  constexpr int64_t kChannels[] = {8, 24, 32};
  for (const int64_t kernel : {3, 5}) {
    for (int64_t w = 1; w <= 19; ++w) {
      for (int64_t pad = 0; pad < kernel; ++pad) {
        if (w + 2 * pad < kernel) continue;
        Conv2dShape s = depthwise_shape(1, 4, w, kChannels[(w + pad) % 3], kernel);
        s.pad_w = pad;
        check_conv(s);
        s.stride_w = 2;
        s.dilation_h = 2;
        check_conv(s);
      }
    }
  }
  for (int64_t w = 3; w <= 8; ++w) {  // whole lines in registers, for the weight gradient
    Conv2dShape s = depthwise_shape(2, 5, w, 16, 3);
    s.pad_w = 1;
    check_conv(s);
  }
  Conv2dShape s = depthwise_shape(1, 4, 17, 8, 3);  // windows that are one tap apart
  s.stride_w = s.dilation_w = s.pad_w = 2;
  check_conv(s);
  for (const int64_t stride : {1, 2}) {  // pixels a kilobyte apart
    for (const int64_t w : {5, 9, 20}) {
      s = depthwise_shape(1, 5, w, 256, 3);
      s.stride_w = stride;
      s.pad_w = 1;
      check_conv(s);
    }
  }
  s = depthwise_shape(3, 24, 24, 32, 3);  // tasks that begin inside images
  s.pad_w = 1;
  check_conv(s);
}

bool window_fits(const Conv2dShape& s) {
  return s.h + 2 * s.pad_h >= s.window_h() && s.w + 2 * s.pad_w >= s.window_w();
}

TEST_CASE("dilated convolutions equal the obvious loop for any kernel, stride and padding",
          "[kernels][conv][serial]") {
  for (const int64_t kernel : {1, 2, 3, 5}) {
    for (const int64_t stride : {1, 2, 3, 4, 6}) {
      for (const int64_t pad : {0, 1, 4}) {
        for (const int64_t dilation : {2, 3, 4}) {
          Conv2dShape s = shape(2, 9, 10, 2, 3, kernel, kernel);
          s.stride_h = s.stride_w = stride;
          s.pad_h = s.pad_w = pad;
          s.dilation_h = s.dilation_w = dilation;
          if (window_fits(s)) check_conv(s);
          s.dilation_w = 1;
          s.groups = s.o = 2;
          if (window_fits(s)) check_conv(s);  // depthwise
        }
      }
    }
  }
}

TEST_CASE("dilated convolutions support groups, whole vectors, long sums and several tasks",
          "[kernels][conv]") {
  for (const int64_t groups : {1, 2, 16}) {
    Conv2dShape s = shape(2, 7, 9, 32, 16, 3, 3);
    s.groups = groups;
    s.dilation_h = 2, s.dilation_w = 3;
    s.pad_h = 2, s.pad_w = 1;
    check_conv(s);
    s.stride_h = 2, s.stride_w = 3;
    check_conv(s);
  }
  for (const int64_t channels : {15, 40}) {
    Conv2dShape s = shape(2, 7, 8, channels, channels, 3, 3);
    s.groups = channels;
    s.dilation_h = 3, s.dilation_w = 2;
    s.pad_h = 3, s.pad_w = 2;
    check_conv(s);
    s.stride_w = 2;
    check_conv(s);
  }
  Conv2dShape s = shape(2, 5, 6, 700, 3, 2, 2);
  s.dilation_h = s.dilation_w = 2;
  check_conv(s);
  s = shape(9, 14, 14, 16, 40, 3, 3);
  s.dilation_h = s.dilation_w = s.pad_h = s.pad_w = 2;
  check_conv(s);
  s = shape(3, 60, 60, 1, 16, 3, 3);  // short sums: each task pads its image rows
  s.dilation_h = s.dilation_w = s.pad_h = s.pad_w = 4;
  check_conv(s);
  s = shape(1, 3, 1100, 4, 4, 3, 3);
  s.dilation_w = s.pad_w = 7;
  check_conv(s);
}

TEST_CASE("convolutions of several tasks and chunks give the same bits with any number of threads",
          "[kernels][conv]") {
  Conv2dShape s = shape(9, 14, 14, 16, 40, 3, 3);
  s.pad_h = s.pad_w = 1;
  check_conv(s);
  s = shape(10, 12, 12, 1, 32, 3, 3);
  check_conv(s);
  // A task covers several whole images, and in each image the windows of many pixels cover the same
  // taps.
  s = shape(16, 9, 8, 5, 6, 3, 3);
  s.pad_h = s.pad_w = 1;
  check_conv(s);
  // Tasks begin and end inside an image, which is padded with zeros.
  s = shape(4, 60, 60, 1, 16, 3, 3);
  s.pad_h = s.pad_w = 1;
  check_conv(s);
  s = shape(2, 50, 40, 3, 20, 3, 5);
  s.pad_h = 1, s.pad_w = 2;
  check_conv(s);
}

TEST_CASE("convolutions of many channels give the same bits with many threads as with one",
          "[kernels][conv]") {
  // With more than 8 threads, there are more tasks: of weight gradients, these are some channels of
  // a tap, and packed weights are more than a task, too.
  for (const Conv2dShape& s : {shape(8, 14, 14, 64, 64, 1, 1),
                               shape(1, 24, 24, 96, 80, 1, 1),
                               shape(2, 13, 13, 48, 70, 3, 3),
                               shape(20, 8, 8, 40, 48, 3, 3),
                               // Split as with one thread: with fewer rows, blocks would be longer.
                               shape(24, 10, 10, 8, 64, 3, 3),
                               shape(20, 12, 12, 3, 80, 3, 3)}) {
    INFO("n " << s.n << " c " << s.c << " kernel " << s.kh << "x" << s.kw);
    const std::vector<float> x = random_floats(s.x_elements(), 1);
    const std::vector<float> w = random_floats(s.weight_elements(), 2);
    const std::vector<float> grad_y = random_floats(s.y_elements(), 3);
    const test::RestoreSettings restore;
    std::vector<float> expected;
    for (const int threads : test::thread_counts({1, 2, 16})) {
      set_threads(threads);
      std::vector<float> results(grad_y.size() + x.size() + w.size());
      float* const grad_x = results.data() + grad_y.size();
      conv2d_f32(s, x.data(), w.data(), results.data(), {});
      conv2d_backward_data_f32(s, grad_y.data(), w.data(), grad_x);
      conv2d_backward_weights_f32(s, x.data(), grad_y.data(), grad_x + x.size());
      if (expected.empty()) expected = results;
      CHECK(test::same_bits(results, expected));
    }
  }
}

TEST_CASE("convolutions over many channels add up every block of a sum", "[kernels][conv]") {
  // Some rows of taps fit in one block, and others take several blocks.
  for (const int64_t channels : {80, 120, 200, 700, 1100}) {
    Conv2dShape s = shape(2, 4, 5, channels, 3, 3, 3);
    s.pad_h = s.pad_w = 1;
    check_conv(s);
    s.stride_h = s.stride_w = 2;
    check_conv(s);
    check_conv(shape(1, 3, 4, 2, channels, 3, 2));
    check_conv(shape(1, 3, 2, 16, channels, 2, 2));
  }
  Conv2dShape grouped = shape(1, 4, 4, 1400, 4, 2, 2);
  grouped.groups = 2;
  check_conv(grouped);
}

TEST_CASE("weight gradients add up every part of a long sum", "[kernels][conv]") {
  for (const int64_t groups : {1, 4}) {
    Conv2dShape s = shape(1, 3, 1100, 4, 4, 3, 3);  // image rows longer than a chain
    s.groups = groups;
    s.pad_h = s.pad_w = 1;
    check_conv(s);
    s.h = 1100, s.w = 2;
    check_conv(s);
    s = shape(1, 190, 190, 4, 4, 2, 2);  // more pixels than a chunk
    s.groups = groups;
    check_conv(s);
  }
  check_conv(shape(1, 190, 190, 1, 4, 3, 3));
}

TEST_CASE("the weight gradient of a convolution of no images is 0", "[kernels][conv]") {
  check_conv(shape(0, 5, 5, 3, 4, 3, 3));
}

}  // namespace
}  // namespace quantrain::kernels
