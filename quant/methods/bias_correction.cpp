#include "quant/methods/bias_correction.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "framework/core/error.hpp"
#include "quant/methods/rescale.hpp"

namespace quantrain::quant {
namespace {

constexpr double kHalfRoot = 0.70710678118654752440;        // sqrt(1 / 2)
constexpr double kInverseRootTau = 0.39894228040143267794;  // 1 / sqrt(2 pi)

double root_mean_square(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

void subtract(Tensor parameter, const std::vector<double>& amount) {
  float* const values = parameter.mutable_data();
  for (size_t c = 0; c < amount.size(); ++c)
    values[c] = static_cast<float>(static_cast<double>(values[c]) - amount[c]);
}

// mean(y_q) - mean(y) of each output channel.
std::vector<double> moved_means(MethodRun& run, const Product& product) {
  const ChannelMeans now = channel_means(run.net, run.data, {product}, deployed_pass);
  std::vector<double> difference = now.at(product.path);
  const std::vector<double>& was = run.float_means.at(product.path);
  for (size_t c = 0; c < difference.size(); ++c) difference[c] -= was[c];
  return difference;
}

// E[x] of each channel of a product's input, as far as batch norms tell it.
using Means = std::vector<std::optional<double>>;

std::map<std::string, Means> input_means(MethodRun& run,
                                         const std::vector<Product>& products,
                                         const std::vector<WiredValue>& wiring) {
  std::map<std::string, Means> all;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Product& product : products) {
    const auto& norm = product.slot->folding();
    if (norm == nullptr) continue;
    Place place;
    try {
      place = place_of(run.net, wiring, product.path);
    } catch (const QuantError&) {
      continue;  // something else than products reads it
    }
    const bool clips = product.activation != Activation::kNone;
    const double low = clips ? 0.0 : -kInfinity;
    const double high = clips ? static_cast<double>(upper_bound(product.activation)) : kInfinity;
    const Floats beta = norm->beta.floats();
    const Floats gamma = norm->gamma.floats();
    for (const Place::Reader& reader : place.readers) {
      if (!reader.keeps_mean) continue;
      Means& means = all[reader.layer];
      means.resize(static_cast<size_t>(reader.total));
      for (int64_t c = 0; c < place.channels; ++c)
        means[static_cast<size_t>(reader.offset + c)] =
            clipped_normal_mean(beta[c], std::abs(gamma[c]), low, high);
    }
  }
  return all;
}

// sum of (w_q - w) E[x] of each output channel.
std::vector<double> expected(const Product& product, const Tensor& weight, const Means& means) {
  const Place::Reader reader{.layer = product.path, .total = std::ssize(means)};
  const ReadChannels read(reader, weight.shape());
  const Floats quantized = weight.floats();
  const std::vector<float> w = product.folded_weight();
  std::vector<double> sums(static_cast<size_t>(weight.dim(0)), 0.0);
  const size_t inner = w.size() / sums.size();
  for (size_t i = 0; i < w.size(); ++i) {
    const double error = static_cast<double>(quantized[i]) - static_cast<double>(w[i]);
    sums[i / inner] += error * *means[static_cast<size_t>(read.of(static_cast<int64_t>(i)))];
  }
  return sums;
}

}  // namespace

double clipped_normal_mean(double mean, double deviation, double low, double high) {
  if (deviation == 0.0) return std::clamp(mean, low, high);
  const auto density = [](double z) { return kInverseRootTau * std::exp(-0.5 * z * z); };
  const auto below = [](double z) { return 0.5 * std::erfc(-z * kHalfRoot); };
  const double a = (low - mean) / deviation;
  const double b = (high - mean) / deviation;
  double result = deviation * (density(a) - density(b)) + mean * (below(b) - below(a));
  if (std::isfinite(low)) result += low * below(a);
  if (std::isfinite(high)) result += high * (1.0 - below(b));
  return result;
}

void BiasCorrection::apply(MethodRun& run) const {
  const std::vector<Product> products = products_of(run.net, run.example);
  std::map<std::string, Means> means;
  if (from == From::kBatchNorms)
    means = input_means(run, products, wiring_of(run.net, run.example));
  for (const Product& product : products) {
    MethodRow row{.method = std::string(kName),
                  .layer = product.path,
                  .measure = "rmse of the outputs' means"};
    const Means& known = means[product.path];
    if (!product.shift().defined()) {
      row.skipped = "it has neither a bias nor a batch norm: make it with .bias = true";
    } else if (from == From::kBatchNorms &&
               (known.empty() ||
                std::any_of(known.begin(), known.end(), [](const auto& mean) { return !mean; }))) {
      row.skipped = "its input does not come from batch norms alone: use From::kData";
    } else {
      const std::vector<double> before = moved_means(run, product);
      if (from == From::kData) {
        subtract(product.shift(), before);
      } else {
        const Graph graph = deployed_pass(run.net, run.example);
        subtract(product.shift(), expected(product, values_of(product, graph).weight, known));
      }
      row.before = root_mean_square(before);
      row.after = root_mean_square(moved_means(run, product));
    }
    run.rows.push_back(std::move(row));
  }
}

}  // namespace quantrain::quant
