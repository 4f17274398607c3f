#include "quant/analysis/diagnose.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/data/dataset.hpp"
#include "framework/data/tensor_dataset.hpp"
#include "quant/analysis/findings.hpp"
#include "quant/analysis/measurement.hpp"
#include "quant/analysis/spread.hpp"

namespace quantrain::quant {

const LayerDiagnosis& Diagnosis::layer(std::string_view name) const& {
  for (const LayerDiagnosis& layer : layers) {
    if (layer.name == name) return layer;
  }
  throw GraphError("diagnosis", "there is no layer \"", name, '"');
}

const LayerDiagnosis* Diagnosis::most_saturated() const& {
  const LayerDiagnosis* most = nullptr;
  for (const LayerDiagnosis& layer : layers) {
    if (layer.slot.empty() && !layer.is_input) continue;  // it passes on the codes of another
    if (layer.saturated() > (most == nullptr ? 0.0 : most->saturated())) most = &layer;
  }
  return most;
}

const LayerDiagnosis* Diagnosis::noisiest() const& {
  const LayerDiagnosis* most = nullptr;
  for (const LayerDiagnosis& layer : layers) {
    if (layer.floats.values == 0 || !std::isfinite(layer.snr_accumulated)) continue;
    if (most == nullptr || layer.snr_accumulated < most->snr_accumulated) most = &layer;
  }
  return most;
}

namespace {

constexpr int64_t kRead = 64;  // samples at a time

/// Positions of the samples to measure, in an order that begins with those for single layers.
std::vector<int64_t> positions(int64_t n, const DiagnoseOptions& options) {
  const std::vector<int64_t> picked = spread(n, options.samples);
  std::vector<bool> is_first(picked.size(), false);
  std::vector<int64_t> order;
  for (const int64_t i : spread(std::ssize(picked), options.alone_samples)) {
    is_first[static_cast<size_t>(i)] = true;
    order.push_back(picked[static_cast<size_t>(i)]);
  }
  for (size_t i = 0; i < picked.size(); ++i) {
    if (!is_first[i]) order.push_back(picked[i]);
  }
  return order;
}

/// The share of values that saturated when a data set encoded them; of all samples it was made
/// with, even if it is a part of them.
double saturated_share(const BatchSource& source, size_t input) {
  const auto share = [](int64_t saturated, int64_t samples, const Shape& sample) {
    return static_cast<double>(saturated) /
           static_cast<double>(std::max<int64_t>(1, samples * sample.elements()));
  };
  if (const auto* const images = dynamic_cast<const Dataset*>(&source))
    return share(images->saturated(), images->size(), images->image_shape());
  const auto* const tensors = dynamic_cast<const TensorDataset*>(&source);
  if (tensors == nullptr || input >= tensors->inputs().size()) return 0.0;
  const SampleArray& array = tensors->inputs()[input];
  return array.has_codes() ? share(array.saturated(), array.size(), array.shape()) : 0.0;
}

/// Measures samples that are spread over the data, which can be read in any order.
Diagnosis measure_spread(Measurement& measurement,
                         const DataLoader& data,
                         const DiagnoseOptions& options) {
  const std::vector<int64_t> order = data.order();
  const std::vector<int64_t> at = positions(std::ssize(order), options);
  const LoaderOptions& own = data.options();
  const BatchSource::Reader read = data.source()->read(
      {.epoch = data.epoch(), .seed = own.seed, .augment = own.augment, .mixup = own.mixup});
  std::vector<int64_t> indices;
  for (size_t i = 0; i < at.size(); ++i) {
    indices.push_back(order[static_cast<size_t>(at[i])]);
    if (std::ssize(indices) < kRead && i + 1 < at.size()) continue;
    measurement.add(read(indices));
    indices.clear();
  }
  Diagnosis diagnosis = measurement.finish();
  for (SampleDiagnosis& sample : diagnosis.worst)
    sample.index = at[static_cast<size_t>(sample.index)];
  return diagnosis;
}

}  // namespace

Diagnosis diagnose(Module& net, const DataLoader& data, const DiagnoseOptions& options) {
  Measurement measurement(net, options);
  Diagnosis diagnosis;
  if (data.samples() && data.source()->any_order()) {
    diagnosis = measure_spread(measurement, data, options);
  } else {
    for (const Batch& batch : data) {
      measurement.add(batch);
      if (measurement.full()) break;
    }
    diagnosis = measurement.finish();
  }
  size_t input = 0;
  for (LayerDiagnosis& layer : diagnosis.layers) {
    // No more than the samples show, because this data set may be a part of the encoded one.
    if (layer.is_input)
      layer.saturated_encoding =
          std::min(layer.at_limits, saturated_share(*data.source(), input++));
  }
  diagnosis.findings = find(diagnosis);
  return diagnosis;
}

}  // namespace quantrain::quant
