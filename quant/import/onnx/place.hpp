#pragma once

#include <map>
#include <string>
#include <vector>

#include "layers/network/network.hpp"
#include "quant/import/onnx/import_quantized_onnx.hpp"
#include "quant/prepare/survey.hpp"

namespace quantrain::onnx {

/// The weights of a layer as the file quantizes them.
struct LayerWeights {
  QParams params;
  std::string problem{};  ///< why they cannot be kept; empty if they can
};

/// A network of floats with a step for each quantizer of the file.
struct QuantizedParts {
  NetworkParts parts;
  std::map<std::string, QParams> quantizers{};    ///< by step
  std::map<std::string, LayerWeights> weights{};  ///< by step
};

/// Folds each batch norm that alone reads the result of a layer with quantized weights into these
/// weights. Weights keep their codes, or negate them, and scales change by the factor (15).
void fold_batch_norms(QuantizedParts& net);

/// Where the parameters of a file go: into the slots of layers, which stand for the steps of
/// quantizers, or into a step that changes codes, where there is no such slot.
struct Placed {
  NetworkParts parts;
  std::map<std::string, QParams> inputs{};  ///< unsigned, 8 bits
  std::map<std::string, QParams> values{};  ///< by step
};

/// ranges: QuantizedOnnxOptions::ranges.
/// Throws: QuantError if a value is quantized in two ways, or an input's codes do not have 8 bits
/// and no range is given; as Survey.
Placed place(const QuantizedParts& net,
             const std::map<std::string, Range>& ranges,
             const std::string& path);

/// The sites of a network, as prepare_qat finds them for such inputs.
std::vector<quant::Site> sites_of(Network& net, const quant::QConfig& config);

}  // namespace quantrain::onnx
