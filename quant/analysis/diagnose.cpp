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

constexpr int64_t kRead = 64;         // samples at a time
constexpr int64_t kMostExtreme = 16;  // samples with extreme targets

/// Positions of up to kMostExtreme samples whose targets lie farthest from the median of their
/// channel, if the data set has targets of a few numbers. `order`: of the samples.
std::vector<int64_t> extreme_positions(const BatchSource& source,
                                       const std::vector<int64_t>& order) {
  const auto* const data = dynamic_cast<const TensorDataset*>(&source);
  const auto* const targets =
      data == nullptr ? nullptr : std::get_if<std::vector<SampleArray>>(&data->targets());
  if (targets == nullptr || targets->empty() || order.empty()) return {};
  const SampleArray& first = (*targets)[0];
  const int64_t numbers = first.shape().elements();
  if (numbers < 1 || numbers > kMostExtreme) return {};
  std::vector<int64_t> rows;
  for (const int64_t i : order) rows.push_back(data->row(i));
  const Tensor all = first.tensor(rows);
  const Floats values = all.floats();
  std::vector<int64_t> extreme;
  for (int64_t c = 0; c < numbers; ++c) {
    std::vector<std::pair<float, int64_t>> column;
    for (int64_t i = 0; i < std::ssize(rows); ++i) column.emplace_back(values[i * numbers + c], i);
    const auto middle = column.begin() + std::ssize(column) / 2;
    std::nth_element(column.begin(), middle, column.end());
    const float median = middle->first;
    const auto count = std::min<int64_t>(std::ssize(column), kMostExtreme / numbers);
    std::partial_sort(
        column.begin(), column.begin() + count, column.end(), [&](const auto& a, const auto& b) {
          const float of_a = std::abs(a.first - median);
          const float of_b = std::abs(b.first - median);
          return of_a > of_b || (of_a == of_b && a.second < b.second);
        });
    for (int64_t i = 0; i < count; ++i) extreme.push_back(column[static_cast<size_t>(i)].second);
  }
  return extreme;
}

/// Positions of the samples to measure, in an order that begins with those for single layers and
/// ends with those of `more` that are not among them.
std::vector<int64_t> positions(int64_t n,
                               const DiagnoseOptions& options,
                               const std::vector<int64_t>& more) {
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
  std::vector<bool> is_picked(static_cast<size_t>(n), false);
  for (const int64_t i : picked) is_picked[static_cast<size_t>(i)] = true;
  for (const int64_t i : more) {
    if (is_picked[static_cast<size_t>(i)]) continue;
    is_picked[static_cast<size_t>(i)] = true;
    order.push_back(i);
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
Diagnosis measure_spread(Module& net, const DataLoader& data, DiagnoseOptions options) {
  const std::vector<int64_t> order = data.order();
  const std::vector<int64_t> at =
      positions(std::ssize(order), options, extreme_positions(*data.source(), order));
  options.samples = std::max(options.samples, std::ssize(at));
  Measurement measurement(net, options);
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
  const Measurement check(net, options);  // of the arguments
  Diagnosis diagnosis;
  if (data.samples() && data.source()->any_order()) {
    diagnosis = measure_spread(net, data, options);
  } else {
    Measurement measurement(net, options);
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
