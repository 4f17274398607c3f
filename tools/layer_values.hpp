#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/arithmetic/qparams.hpp"
#include "framework/core/shape.hpp"
#include "tools/data.hpp"
#include "tools/model.hpp"

namespace quantrain::tools {

/// The values of a layer for a batch.
struct LayerValues {
  std::string name;
  Shape shape;  ///< [N, ...]
  std::vector<float> real{};
  std::vector<int32_t> codes{};     ///< if it has codes
  std::optional<QParams> params{};  ///< of the codes
};

struct AllValues {
  std::vector<LayerValues> layers;  ///< without the outputs
  std::vector<LayerValues> outputs;
};

/// Runs a model on the same samples again and again, and gives the values of its layers. A network
/// of floats has those layers whose values a deployed network would have, after the batch norm and
/// activation that it would fuse.
class LayerRunner {
 public:
  /// data: for the ranges that a network of floats needs to be prepared.
  LayerRunner(Model& model, const Samples& samples);
  /// rows: of the samples' data.
  AllValues run(const std::vector<int64_t>& rows);

 private:
  AllValues run_network(const std::vector<int64_t>& rows);
  AllValues run_integers(const std::vector<int64_t>& rows);

  Model& model_;
  const Samples& samples_;
  std::optional<Network> prepared_;  ///< of a network of floats that can be prepared
};

}  // namespace quantrain::tools
