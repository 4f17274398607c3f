#pragma once

#include <cstdint>

#include "framework/data/loader.hpp"
#include "layers/module.hpp"
#include "quant/analysis/diagnosis.hpp"

namespace quantrain::quant {

struct DiagnoseOptions {
  int64_t samples = 1024;      ///< at most; the first of the data
  int64_t alone_samples = 64;  ///< on which each layer is quantized alone: a pass for each layer
  int64_t worst = 4;           ///< number of worst samples to keep
};

/// Measures what quantization costs a prepared network on data, layer by layer, and what is wrong
/// with it. Runs the network as it is deployed, its integer program, and in FloatMode, on the same
/// batches, and compares. If the batches carry codes, the float pass begins with their values.
/// Memory depends on the batch, not on the number of samples. The network is left as it was.
/// Throws: GraphError if the network is not prepared; DataError if there is no sample, or naming the
/// layer if one of its values is NaN or infinite, if labels are out of range, or if an option is
/// not positive; ShapeError if targets have another shape than the outputs; what convert() throws.
Diagnosis diagnose(Module& net, const DataLoader& data, const DiagnoseOptions& options = {});

}  // namespace quantrain::quant
