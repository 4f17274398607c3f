#include "quant/methods/weight_ranges.hpp"

#include <algorithm>
#include <cmath>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"

namespace quantrain::quant {
namespace {

float largest(std::span<const float> w) {
  float most = 0.0f;
  for (const float value : w) most = std::max(most, std::abs(value));
  return most;
}

float best_scale(std::span<const float> w,
                 float whole,
                 const QType& type,
                 const WeightRanges& options) {
  float best = whole;
  double least = squared_error(w, whole, type);
  const float step = (1.0f - options.least) / static_cast<float>(options.steps);
  for (int64_t k = 1; k <= options.steps; ++k) {
    const float scale = whole * (1.0f - static_cast<float>(k) * step);
    const double error = squared_error(w, scale, type);
    if (error >= least) continue;
    least = error;
    best = scale;
  }
  return best;
}

// Chooses the layer's scales, and gives them to its slot.
void choose(const Product& product,
            const QParams& params,
            const WeightRanges& options,
            MethodRow& row) {
  const std::vector<float> w = product.folded_weight();
  const size_t inner = w.size() / params.scale.size();
  const auto qmax = static_cast<float>(params.type.qmax());
  QParams chosen = params;
  const auto errors = [&](const QParams& with) {
    double sum = 0.0;
    for (size_t c = 0; c < with.scale.size(); ++c)
      sum += squared_error(std::span(w).subspan(c * inner, inner), with.scale[c], with.type);
    return std::sqrt(sum / static_cast<double>(w.size()));
  };
  parallel_for(std::ssize(params.scale), 1, [&](int64_t begin, int64_t end) {
    for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c) {
      const auto values = std::span(w).subspan(c * inner, inner);
      // A larger scale than the weights need comes from the bias.
      const bool of_bias = params.scale[c] > 1.01f * largest(values) / qmax;
      if (!of_bias) chosen.scale[c] = best_scale(values, params.scale[c], params.type, options);
    }
  });
  row.before = errors(params);
  row.after = errors(chosen);
  product.slot->set_params(chosen);
}

}  // namespace

double squared_error(std::span<const float> w, float scale, const QType& type) {
  double sum = 0.0;
  for (const float value : w) {
    const float is = dequantize(quantize(value, scale, 0, type.qmin(), type.qmax()), scale, 0);
    const double difference = static_cast<double>(value) - static_cast<double>(is);
    sum += difference * difference;
  }
  return sum;
}

void WeightRanges::apply(MethodRun& run) const {
  if (steps < 1 || !(least > 0.0f && least <= 1.0f)) {
    throw DataError(
        kName, "steps must be positive and least in (0, 1], got ", steps, " and ", least);
  }
  const std::vector<Product> products = products_of(run.net, run.example);
  const Graph graph = deployed_pass(run.net, run.example);
  for (const Product& product : products) {
    MethodRow row{
        .method = std::string(kName), .layer = product.path, .measure = "rmse of the weights"};
    const WeightConfig& config = product.slot->config();
    if (config.scheme != QScheme::kSymmetric) {
      row.skipped = "its weights are affine";
    } else if (product.slot->is_given() || config.estimator == Estimator::kLearned) {
      row.skipped = "its scales are learned or given";
    } else if (config.function) {
      row.skipped = product.fixed;
    } else {
      choose(product, TensorAccess::code_params(values_of(product, graph).weight), *this, row);
    }
    run.rows.push_back(std::move(row));
  }
}

}  // namespace quantrain::quant
