#include "quant/analysis/diagnose.hpp"

#include <cmath>

#include "framework/core/error.hpp"
#include "quant/analysis/findings.hpp"
#include "quant/analysis/measurement.hpp"

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

Diagnosis diagnose(Module& net, const DataLoader& data, const DiagnoseOptions& options) {
  Measurement measurement(net, options);
  for (const Batch& batch : data) {
    measurement.add(batch);
    if (measurement.full()) break;
  }
  Diagnosis diagnosis = measurement.finish();
  diagnosis.findings = find(diagnosis);
  return diagnosis;
}

}  // namespace quantrain::quant
