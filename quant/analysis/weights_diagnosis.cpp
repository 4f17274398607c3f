#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/quantize.hpp"
#include "quant/analysis/findings.hpp"
#include "quant/analysis/measurement.hpp"
#include "quant/prepare/weight_quantizer.hpp"

namespace quantrain::quant {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void add_bias_error(const GraphNode& node, const Tensor& bias, WeightsDiagnosis& result) {
  const Tensor& x = node.inputs[0];
  if (!bias.defined() || x.kind() != ValueKind::kCodes) return;
  const int weight = node.node->traits().weight;
  const QParams& params = node.inputs[static_cast<size_t>(weight)].codes()->params;
  const float scale_x = x.codes()->params.scale[0];
  const Floats values = bias.floats();
  double squares = 0.0;
  for (int64_t c = 0; c < bias.elements(); ++c) {
    const float scale_w = params.scale[params.per_channel() ? static_cast<size_t>(c) : 0];
    const double real = sum_scale(scale_x, scale_w) *
                        static_cast<double>(quantize_bias(values[c], scale_x, scale_w));
    squares += (real - static_cast<double>(values[c])) * (real - static_cast<double>(values[c]));
  }
  result.bias_error = std::sqrt(squares / static_cast<double>(bias.elements()));
}

}  // namespace

WeightsDiagnosis diagnose_weights(Module& layer, const GraphNode& node, const Weights& in_float) {
  const NoGrad no_grad;
  const auto& slot = dynamic_cast<const WeightQuantizer&>(*layer.slots().weight);
  const Weights folded = slot.folding() ? fold_batch_norm(in_float, *slot.folding()) : in_float;
  const auto at = static_cast<size_t>(node.node->traits().weight);
  const Tensor& quantized = node.inputs[at];
  const QParams& params = quantized.codes()->params;
  WeightsDiagnosis result{.type = params.type,
                          .per_channel = params.per_channel(),
                          .learned = slot.config().estimator == Estimator::kLearned};
  result.channels = folded.weight.dim(0);
  const int64_t inner = folded.weight.elements() / result.channels;
  const Floats w = folded.weight.floats();
  const Floats q = quantized.floats();
  SignalNoise all;
  std::vector<double> largest;
  double worst = INFINITY;
  for (int64_t c = 0; c < result.channels; ++c) {
    SignalNoise channel;
    channel.add(inner, w.data() + c * inner, q.data() + c * inner);
    all.add(inner, w.data() + c * inner, q.data() + c * inner);
    if (channel.signal > 0.0 && channel.decibels() < worst) {
      worst = channel.decibels();
      result.worst_channel = c;
    }
    double top = 0.0;
    for (int64_t i = c * inner; i < (c + 1) * inner; ++i)
      top = std::max(top, std::abs(static_cast<double>(w[i])));
    largest.push_back(top);
  }
  result.snr = all.decibels();
  result.worst_snr = worst;
  const auto biggest = std::max_element(largest.begin(), largest.end());
  result.largest_channel = biggest - largest.begin();
  result.largest_to_median = largest_to_median(largest);

  std::vector<double> codes;
  double farthest = 0.0;
  for (size_t c = 0; c < largest.size(); ++c) {
    const auto scale = static_cast<double>(params.scale[params.per_channel() ? c : 0]);
    codes.push_back(1.0 +
                    2.0 * std::min(largest[c] / scale, static_cast<double>(params.type.qmax())));
    // A scale for all channels must fit the largest one.
    const double top = params.per_channel() ? largest[c] : *biggest;
    if (top == 0.0) continue;
    const double ratio = scale * static_cast<double>(params.type.qmax()) / top;
    if (std::abs(std::log2(ratio)) > farthest) {
      farthest = std::abs(std::log2(ratio));
      result.scale_to_weights = ratio;
    }
    const bool stuck = ratio < kSmallestScaleRatio || ratio > kLargestScaleRatio;
    result.stuck_scales += result.learned && stuck ? 1 : 0;
  }
  result.median_codes = median(codes);
  add_bias_error(node, node.inputs.size() > at + 1 ? node.inputs[at + 1] : Tensor(), result);
  return result;
}

}  // namespace quantrain::quant
