#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "framework/core/random.hpp"
#include "layers/record_graph.hpp"
#include "quant/analysis/batch_part.hpp"
#include "quant/analysis/measurement.hpp"
#include "quant/prepare/scopes.hpp"

// What one quantized layer changes at the network's outputs.
namespace quantrain::quant {
namespace {

/// While it lives, the network takes floats as they are, also if its input has features.
class WithoutInputs {
 public:
  explicit WithoutInputs(Module& net) : net_(net), inputs_(std::exchange(net.slots().inputs, {})) {}
  ~WithoutInputs() { net_.slots().inputs = std::move(inputs_); }
  WithoutInputs(const WithoutInputs&) = delete;
  WithoutInputs& operator=(const WithoutInputs&) = delete;

 private:
  Module& net_;
  std::vector<std::shared_ptr<Module>> inputs_;
};

/// Float codes' values, each moved by a random amount of up to half a step: where the values that
/// were rounded to them may have been.
Tensor moved_by_half_steps(const Tensor& input, const QParams& params) {
  Random random(0);
  const Floats x = input.floats();
  Tensor moved = Tensor::empty(input.shape());
  float* const y = moved.mutable_data();
  const float half = 0.5f * params.scale[0];
  for (int64_t i = 0; i < input.elements(); ++i) y[i] = x[i] + random.uniform(-half, half);
  return moved;
}

/// Interquartile range / 1.349; if it is 0, the standard deviation.
double usual_spread(std::vector<float> values) {
  std::sort(values.begin(), values.end());
  const double quartiles = static_cast<double>(values[values.size() * 3 / 4]) -
                           static_cast<double>(values[values.size() / 4]);
  if (quartiles > 0.0) return quartiles / 1.349;
  double sum = 0.0;
  double squares = 0.0;
  for (const float value : values) {
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  const auto n = static_cast<double>(values.size());
  return std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n)));
}

}  // namespace

Graph Measurement::moved_input(std::vector<Tensor> inputs, size_t position, const QParams& params) {
  inputs[position] = moved_by_half_steps(inputs[position], params);
  const FloatMode in_float(net_);
  const WithoutInputs plain(net_);
  return record_graph(net_, inputs);
}

void Measurement::keep_outputs(const Graph& floats) {
  std::vector<std::vector<float>>& to = alone_outputs_;
  size_t first = 0;
  for (const Tensor& output : floats.outputs()) {
    const auto channels = static_cast<size_t>(last_extent(output.shape()));
    to.resize(std::max(to.size(), first + channels));
    const Floats y = output.floats();
    for (int64_t i = 0; i < output.elements(); ++i)
      to[first + static_cast<size_t>(i) % channels].push_back(y[i]);
    first += channels;
  }
}

void Measurement::add_output_noise(Row& row, const Graph& floats, const Graph& alone) const {
  row.output_noise.resize(alone_outputs_.size());
  size_t first = 0;
  for (size_t k = 0; k < floats.outputs().size(); ++k) {
    const auto channels = static_cast<size_t>(last_extent(floats.outputs()[k].shape()));
    const Floats a = floats.outputs()[k].floats();
    const Floats b = alone.outputs()[k].floats();
    for (int64_t i = 0; i < floats.outputs()[k].elements(); ++i) {
      const double change = static_cast<double>(b[i]) - static_cast<double>(a[i]);
      row.output_noise[first + static_cast<size_t>(i) % channels] += change * change;
    }
    first += channels;
  }
}

double Measurement::output_error(const Row& row) const {
  double worst = 0.0;
  for (size_t c = 0; c < row.output_noise.size(); ++c) {
    const double spread = usual_spread(alone_outputs_[c]);
    const auto n = static_cast<double>(alone_outputs_[c].size());
    if (spread > 0.0) worst = std::max(worst, std::sqrt(row.output_noise[c] / n) / spread);
  }
  return worst;
}

}  // namespace quantrain::quant
