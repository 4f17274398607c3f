#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/error.hpp"
#include "quant/analysis/batch_part.hpp"
#include "quant/analysis/measurement.hpp"

// What a Measurement keeps of the network's outputs.
namespace quantrain::quant {
namespace {

constexpr int64_t kMostKept = 1 << 14;  // floats of a sample that a report keeps

Tensor rows_of(const Tensor& x) {
  const Floats values = x.floats();
  const int64_t columns = last_extent(x.shape());
  return Tensor::from({x.elements() / columns, columns},
                      {values.data(), static_cast<size_t>(x.elements())});
}

}  // namespace

void Measurement::add_integers(const Graph& deployed,
                               const Lowered& lowered,
                               std::vector<Tensor>& outputs) {
  const integer::Program& program = model_->program();
  std::vector<const uint8_t*> inputs;
  for (const int id : program.inputs)
    inputs.push_back(deployed.node(lowered.nodes[static_cast<size_t>(id)]).output.codes()->u8());
  const int64_t n = deployed.outputs()[0].dim(0);
  outputs.resize(program.outputs.size());
  model_->trace(n, inputs, [&](size_t position, const void* result) {
    const int id = program.steps[position].output;
    const integer::Value& value = program.value(id);
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (program.outputs[k] != id) continue;
      const Tensor& simulated = deployed.outputs()[k];
      outputs[k] = Tensor::empty(simulated.shape());
      float* const y = outputs[k].mutable_data();
      const Floats own = simulated.floats();
      for (int64_t i = 0; i < simulated.elements(); ++i) {
        const auto at = static_cast<size_t>(i);
        if (value.is_codes()) {
          const int32_t code = static_cast<const uint8_t*>(result)[at];
          y[i] = dequantize(code,
                            value.params->scale[0],
                            value.params->zero_point[0] + stored_offset(value.params->type));
        } else {
          const int32_t sum = static_cast<const int32_t*>(result)[at];
          y[i] =
              static_cast<float>(value.scale[at % value.scale.size()] * static_cast<double>(sum));
        }
        // Rounding of the real value may differ in the last bit, the integer may not.
        result_.integers_different += std::abs(y[i] - own[i]) > 1e-5f * std::abs(own[i]) ? 1 : 0;
      }
    }
  });
}

void Measurement::add_classes(const Part& part,
                              const Tensor& floats,
                              const Tensor& sim,
                              const Tensor& ints) {
  const int64_t classes = last_extent(floats.shape());
  const auto rows = static_cast<size_t>(floats.elements() / classes);
  if (classes < 2 || part.labels.size() != rows) return;
  if (!result_.classes) {
    const ConfusionMatrix none(classes);
    result_.classes = ClassesDiagnosis{none, none, none};
  }
  result_.classes->floats.add(rows_of(floats), part.labels);
  result_.classes->simulated.add(rows_of(sim), part.labels);
  result_.classes->integers.add(rows_of(ints), part.labels);
}

void Measurement::add_targets(const Part& part,
                              const Graph& deployed,
                              const Lowered& lowered,
                              const Graph& floats,
                              const std::vector<Tensor>& integers) {
  if (part.targets.empty()) return;
  const int64_t n = part.targets[0].dim(0);
  std::vector<bool> clipped(static_cast<size_t>(n), false);
  for (const int id : lowered.program.inputs) {
    const Tensor& input = deployed.node(lowered.nodes[static_cast<size_t>(id)]).output;
    const Codes& codes = *input.codes();
    const int32_t offset = stored_offset(codes.params.type);
    const int32_t least = codes.params.type.qmin() + offset;
    const int32_t most = codes.params.type.qmax() + offset;
    for (int64_t i = 0; i < input.elements(); ++i) {
      const int32_t code = codes.u8()[i];
      if (code == least || code == most)
        clipped[static_cast<size_t>(i / (input.elements() / n))] = true;
    }
  }
  for (size_t k = 0; k < std::min(part.targets.size(), integers.size()); ++k) {
    const Tensor& target = part.targets[k];
    const Shape& y = integers[k].shape();
    const bool without_last = y.rank() == target.rank() + 1 && last_extent(y) == 1 &&
                              std::equal(target.shape().begin(), target.shape().end(), y.begin());
    if (!(target.shape() == y) && !without_last) {
      throw ShapeError(
          "diagnose", "target ", k, " is ", target.shape(), ", the output ", integers[k].shape());
    }
    target_errors_[k].add(target, floats.outputs()[k], integers[k], clipped);
  }
}

void Measurement::add_worst(const Part& part, const Tensor& floats, const Tensor& integers) {
  const int64_t n = floats.dim(0);
  const int64_t size = floats.elements() / n;
  const Floats a = floats.floats();
  const Floats b = integers.floats();
  for (int64_t i = 0; i < n; ++i) {
    double error = 0.0;
    for (int64_t e = i * size; e < (i + 1) * size; ++e)
      error += (static_cast<double>(b[e]) - a[e]) * (static_cast<double>(b[e]) - a[e]);
    error = std::sqrt(error / static_cast<double>(size));
    std::vector<SampleDiagnosis>& worst = result_.worst;
    const auto place = std::find_if(
        worst.begin(), worst.end(), [&](const SampleDiagnosis& s) { return s.error < error; });
    if (place - worst.begin() >= options_.worst) continue;
    SampleDiagnosis sample;
    sample.index = result_.samples + i;
    sample.error = error;
    if (static_cast<int64_t>(part.labels.size()) == n)
      sample.label = part.labels[static_cast<size_t>(i)];
    const Tensor x = batch_part(part.inputs[0], i, 1);
    sample.shape = Shape(std::span(x.shape().begin() + 1, x.shape().end()));
    const Floats values = x.floats();
    if (x.elements() <= kMostKept) sample.input.assign(values.data(), values.data() + x.elements());
    const int64_t kept = std::min(size, kMostKept);
    sample.floats.assign(a.data() + i * size, a.data() + i * size + kept);
    sample.integers.assign(b.data() + i * size, b.data() + i * size + kept);
    worst.insert(place, std::move(sample));
    if (static_cast<int64_t>(worst.size()) > options_.worst) worst.pop_back();
  }
}

}  // namespace quantrain::quant
