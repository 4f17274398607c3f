#include "quant/analysis/diagnose.hpp"

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
