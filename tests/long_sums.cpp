#include "tests/long_sums.hpp"

#include <algorithm>
#include <cmath>

#include "framework/autograd/ops.hpp"
#include "framework/core/random.hpp"
#include "framework/kernels/float/columns.hpp"

namespace quantrain::test {
namespace {

constexpr int64_t kMillion = 1'000'000;
// The longest sum of a convolution (taps * channels) that is checked. It lies just below
// 33,155, the limit of a layer with weights of 8 bits.
constexpr int64_t kMostTaps = 32'768;
constexpr int64_t kMostResults = 16;  // only the first results of an operation are compared

Tensor draw(const Shape& shape, uint64_t seed, const Range& range) {
  Tensor x = Tensor::empty(shape);
  Random random(seed);
  float* const out = x.mutable_data();
  for (int64_t i = 0; i < x.elements(); ++i) out[i] = random.uniform(range.low, range.high);
  return x;
}

template <class Term>
float pairwise_sum(int64_t begin, int64_t end, const Term& term) {
  if (end - begin == 1) return static_cast<float>(term(begin));
  const int64_t middle = begin + (end - begin) / 2;
  return pairwise_sum(begin, middle, term) + pairwise_sum(middle, end, term);
}

double relative_error(double value, double exact) { return std::abs(value / exact - 1.0); }

/// The errors of result[0], result[1], ...; see SumErrors. The exact value of result[j] is
/// finish(sum over i < terms of term(j, i)), computed in double.
template <class Term, class Finish>
SumErrors errors(
    int64_t results, const float* result, int64_t terms, const Term& term, const Finish& finish) {
  SumErrors errors{};
  for (int64_t j = 0; j < std::min(results, kMostResults); ++j) {
    const auto of_result = [&](int64_t i) { return term(j, i); };
    double sum = 0.0;
    for (int64_t i = 0; i < terms; ++i) sum += of_result(i);
    const double exact = finish(sum);
    const double pairwise = finish(double{pairwise_sum(0, terms, of_result)});
    errors.own = std::max(errors.own, relative_error(double{result[j]}, exact));
    errors.pairwise = std::max(errors.pairwise, relative_error(pairwise, exact));
  }
  return errors;
}

double same(double sum) { return sum; }
auto mean_of(int64_t n) {
  return [n](double sum) { return sum / static_cast<double>(n); };
}

SumErrors of_sum(int64_t n, const Range& range) {
  const Tensor x = draw({n}, 1, range);
  const Tensor y = sum(x);
  const auto term = [&](int64_t, int64_t i) { return double{x.data()[i]}; };
  return errors(1, y.data(), n, term, same);
}

SumErrors of_mean(int64_t n, const Range& range) {
  const Tensor x = draw({n}, 1, range);
  const Tensor y = mean(x);
  const auto term = [&](int64_t, int64_t i) { return double{x.data()[i]}; };
  return errors(1, y.data(), n, term, mean_of(n));
}

SumErrors of_axis(int64_t n, const Range& range) {
  const Tensor x = draw({n, 8}, 1, range);
  const Tensor y = sum(x, 0, false);
  const auto term = [&](int64_t j, int64_t i) { return double{x.data()[i * 8 + j]}; };
  return errors(8, y.data(), n, term, same);
}

SumErrors of_mse(int64_t n, const Range& range) {
  const Tensor x = draw({n}, 1, range);
  const Tensor y = mse_loss(x, Tensor::zeros({n}));
  const auto term = [&](int64_t, int64_t i) { return double{x.data()[i]} * double{x.data()[i]}; };
  return errors(1, y.data(), n, term, mean_of(n));
}

SumErrors of_cross_entropy(int64_t n, const Range& range) {
  constexpr int64_t kClasses = 4;
  const Tensor x = draw({n, kClasses}, 1, range);
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < n; ++i) labels.push_back(static_cast<int32_t>(i % kClasses));
  const Tensor y = cross_entropy(x, labels);
  const auto term = [&](int64_t, int64_t i) {
    const float* const row = x.data() + i * kClasses;
    double total = 0.0;
    for (int64_t c = 0; c < kClasses; ++c) total += std::exp(double{row[c]});
    return std::log(total) - double{row[labels[static_cast<size_t>(i)]]};
  };
  return errors(1, y.data(), n, term, mean_of(n));
}

/// Checks the sum in softmax's denominator. It divides every result of a row, so the first result
/// of each row is enough.
SumErrors of_softmax(int64_t n, const Range& range) {
  const Tensor x = draw({2, n}, 1, range);
  const Tensor y = softmax(x);
  SumErrors worst{};
  for (int64_t row = 0; row < 2; ++row) {
    const float* const from = x.data() + row * n;
    const auto term = [&](int64_t, int64_t i) { return std::exp(double{from[i]}); };
    const auto finish = [&](double sum) { return std::exp(double{from[0]}) / sum; };
    const SumErrors e = errors(1, y.data() + row * n, n, term, finish);
    worst = {std::max(worst.own, e.own), std::max(worst.pairwise, e.pairwise)};
  }
  return worst;
}

/// [kRows, n] * [n, kColumns].
template <int64_t kRows, int64_t kColumns>
SumErrors of_matmul(int64_t n, const Range& range) {
  const Tensor a = draw({kRows, n}, 1, range);
  const Tensor b = draw({n, kColumns}, 2, range);
  const Tensor y = matmul(a, b);
  const auto term = [&](int64_t j, int64_t i) {
    return double{a.data()[j / kColumns * n + i]} * double{b.data()[i * kColumns + j % kColumns]};
  };
  return errors(y.elements(), y.data(), n, term, same);
}

/// [kRows, n] * transpose of [kColumns, n].
template <int64_t kRows, int64_t kColumns>
SumErrors of_linear(int64_t n, const Range& range) {
  const Tensor x = draw({kRows, n}, 1, range);
  const Tensor weight = draw({kColumns, n}, 2, range);
  const Tensor y = linear(x, weight, Tensor());
  const auto term = [&](int64_t j, int64_t i) {
    return double{x.data()[j / kColumns * n + i]} * double{weight.data()[j % kColumns * n + i]};
  };
  return errors(y.elements(), y.data(), n, term, same);
}

/// The gradients of sum(y * grad_y).
void backward(const Tensor& y, const Tensor& grad_y) { sum(mul(y, grad_y)).backward(); }

SumErrors of_linear_weight(int64_t n, const Range& range) {
  constexpr int64_t kIn = 8;
  constexpr int64_t kOut = 4;
  const Tensor x = draw({n, kIn}, 1, range);
  const Tensor grad_y = draw({n, kOut}, 2, range);
  Tensor weight = Tensor::zeros({kOut, kIn});
  weight.set_requires_grad(true);
  backward(linear(x, weight, Tensor()), grad_y);
  const auto term = [&](int64_t j, int64_t i) {
    return double{x.data()[i * kIn + j % kIn]} * double{grad_y.data()[i * kOut + j / kIn]};
  };
  const Tensor grad = weight.grad();
  return errors(kIn * kOut, grad.data(), n, term, same);
}

SumErrors of_linear_bias(int64_t n, const Range& range) {
  constexpr int64_t kOut = 4;
  const Tensor grad_y = draw({n, kOut}, 2, range);
  Tensor bias = Tensor::zeros({kOut});
  bias.set_requires_grad(true);
  backward(linear(Tensor::zeros({n, 1}), Tensor::zeros({kOut, 1}), bias), grad_y);
  const auto term = [&](int64_t j, int64_t i) { return double{grad_y.data()[i * kOut + j]}; };
  const Tensor grad = bias.grad();
  return errors(kOut, grad.data(), n, term, same);
}

constexpr int64_t kChannels = 4;

/// Checks the mean or variance of a batch. With momentum 1, batch_norm() stores them as the new
/// running statistics, which the test can read.
SumErrors of_moments(int64_t n, const Range& range, bool of_variance) {
  const Tensor x = draw({1, n, 1, kChannels}, 1, range);
  Tensor mean = Tensor::zeros({kChannels});
  Tensor variance = Tensor::zeros({kChannels});
  batch_norm(x,
             Tensor::zeros({kChannels}),
             Tensor::zeros({kChannels}),
             mean,
             variance,
             {.momentum = 1.0f});
  double middle[kChannels] = {};
  for (int64_t i = 0; i < n * kChannels; ++i)
    middle[i % kChannels] += double{x.data()[i]} / static_cast<double>(n);
  const auto value = [&](int64_t j, int64_t i) { return double{x.data()[i * kChannels + j]}; };
  if (of_variance) {
    const auto term = [&](int64_t j, int64_t i) { return std::pow(value(j, i) - middle[j], 2); };
    return errors(kChannels, variance.data(), n, term, mean_of(n - 1));
  }
  return errors(kChannels, mean.data(), n, value, mean_of(n));
}

SumErrors of_batch_mean(int64_t n, const Range& range) { return of_moments(n, range, false); }

/// Ignores the given range and draws from [0, 1), because numbers just above 1 have almost no
/// variance.
SumErrors of_batch_variance(int64_t n, const Range&) { return of_moments(n, kRanges[0], true); }

/// Checks sum(grad_y) and sum(grad_y * (x - mean)), with mean 0 so that all terms have one sign.
SumErrors of_batch_gradients(int64_t n, const Range& range) {
  const Tensor x = draw({n, kChannels}, 1, range);
  const Tensor grad_y = draw({n, kChannels}, 2, range);
  const float mean[kChannels] = {};
  float sums[2 * kChannels];
  kernels::column_grad_sums_f32(
      n, kChannels, x.data(), mean, grad_y.data(), nullptr, sums, sums + kChannels);
  const auto term = [&](int64_t j, int64_t i) {
    const int64_t at = i * kChannels + j % kChannels;
    return double{grad_y.data()[at]} * (j < kChannels ? 1.0 : double{x.data()[at]});
  };
  return errors(2 * kChannels, sums, n, term, same);
}

/// The side of a square image of about n pixels.
int64_t side(int64_t n) { return std::llround(std::sqrt(static_cast<double>(n))); }

SumErrors of_global_pool(int64_t n, const Range& range) {
  const int64_t size = side(n);
  const Tensor x = draw({1, size, size, kChannels}, 1, range);
  const Tensor y = global_avg_pool2d(x);
  const int64_t pixels = size * size;
  const auto term = [&](int64_t j, int64_t i) { return double{x.data()[i * kChannels + j]}; };
  return errors(kChannels, y.data(), pixels, term, mean_of(pixels));
}

/// Taps of the 2 x 2 kernels below. A sum of n terms runs over these taps and n / 4 channels.
constexpr int64_t kTaps = 4;

SumErrors of_conv(int64_t n, const Range& range) {
  constexpr int64_t kOut = 8;
  const int64_t in = n / kTaps;
  const Tensor x = draw({1, 2, 2, in}, 1, range);
  const Tensor weight = draw({kOut, 2, 2, in}, 2, range);
  const Tensor y = conv2d(x, weight);
  const auto term = [&](int64_t j, int64_t i) {
    return double{x.data()[i]} * double{weight.data()[j * kTaps * in + i]};
  };
  return errors(kOut, y.data(), kTaps * in, term, same);
}

SumErrors of_conv_data(int64_t n, const Range& range) {
  const int64_t out = n / kTaps;
  Tensor x = Tensor::zeros({1, 3, 3, kChannels});
  x.set_requires_grad(true);
  const Tensor weight = draw({out, 2, 2, kChannels}, 1, range);
  const Tensor grad_y = draw({1, 2, 2, out}, 2, range);
  backward(conv2d(x, weight), grad_y);
  // The gradient of the pixel in the middle sums the products of tap (u, v) and the gradient of
  // output pixel (1 - u, 1 - v).
  const auto term = [&](int64_t j, int64_t i) {
    const int64_t tap = i / out;
    const int64_t o = i % out;
    return double{grad_y.data()[(kTaps - 1 - tap) * out + o]} *
           double{weight.data()[(o * kTaps + tap) * kChannels + j]};
  };
  const Tensor grad = x.grad();
  return errors(kChannels, grad.data() + 4 * kChannels, kTaps * out, term, same);
}

/// Checks the gradient of the weights [out, 3, 3, in / groups] of a convolution that keeps the
/// image's size. The results are the gradient's elements in memory order.
SumErrors of_conv_weights(int64_t n, const Range& range, int64_t in, int64_t out, int64_t groups) {
  const int64_t size = side(n);
  const Tensor x = draw({1, size, size, in}, 1, range);
  const Tensor grad_y = draw({1, size, size, out}, 2, range);
  Tensor weight = Tensor::zeros({out, 3, 3, in / groups});
  weight.set_requires_grad(true);
  backward(conv2d(x, weight, Tensor(), {.padding = 1, .groups = groups}), grad_y);
  const int64_t group_in = in / groups;
  const auto term = [&](int64_t j, int64_t i) {
    const int64_t o = j / (9 * group_in);
    const int64_t line = i / size + j / (3 * group_in) % 3 - 1;
    const int64_t pixel = i % size + j / group_in % 3 - 1;
    if (line < 0 || line >= size || pixel < 0 || pixel >= size) return 0.0;
    const int64_t c = o / (out / groups) * group_in + j % group_in;
    return double{x.data()[(line * size + pixel) * in + c]} * double{grad_y.data()[i * out + o]};
  };
  const Tensor grad = weight.grad();
  return errors(weight.elements(), grad.data(), size * size, term, same);
}

SumErrors of_dense_weights(int64_t n, const Range& range) {
  return of_conv_weights(n, range, 4, 4, 1);
}

SumErrors of_few_weights(int64_t n, const Range& range) {
  return of_conv_weights(n, range, 1, 4, 1);
}

SumErrors of_depthwise_weights(int64_t n, const Range& range) {
  return of_conv_weights(n, range, 4, 4, 4);
}

}  // namespace

double SumErrors::bound() const {
  constexpr double kUnit = 1.0 / (1 << 23);
  return 4.0 * std::max(pairwise, kUnit);
}

const std::vector<LongSum>& long_sums() {
  static const std::vector<LongSum> all{
      {"sum", 10 * kMillion, of_sum},
      {"sum along axis 0", 10 * kMillion, of_axis},
      {"mean", 10 * kMillion, of_mean},
      {"mse_loss", 10 * kMillion, of_mse},
      {"cross_entropy", 10 * kMillion, of_cross_entropy},
      {"softmax", 10 * kMillion, of_softmax},
      {"matmul 1 x n x 8", 10 * kMillion, of_matmul<1, 8>},
      {"matmul 1 x n x 80", kMillion, of_matmul<1, 80>},
      {"matmul 8 x n x 16", 10 * kMillion, of_matmul<8, 16>},
      {"matmul 300 x n x 64", kMillion / 10, of_matmul<300, 64>},
      {"linear 4 x n x 8", 10 * kMillion, of_linear<4, 8>},
      {"linear 64 x n x 32", kMillion, of_linear<64, 32>},
      {"linear's gradient by weights", 10 * kMillion, of_linear_weight},
      {"linear's gradient by bias", 10 * kMillion, of_linear_bias},
      {"batch norm's mean", 10 * kMillion, of_batch_mean},
      {"batch norm's variance", 10 * kMillion, of_batch_variance},
      {"batch norm's gradients", 10 * kMillion, of_batch_gradients},
      {"global_avg_pool2d", 10 * kMillion, of_global_pool},
      {"conv2d", kMostTaps, of_conv},
      {"conv2d's gradient by data", kMostTaps, of_conv_data},
      {"conv2d's gradient by weights", 10 * kMillion, of_dense_weights},
      {"the same, one channel", 10 * kMillion, of_few_weights},
      {"the same, depthwise", 10 * kMillion, of_depthwise_weights},
  };
  return all;
}

}  // namespace quantrain::test
