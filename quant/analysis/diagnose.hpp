#pragma once

#include <cstdint>

#include "framework/data/loader.hpp"
#include "layers/module.hpp"
#include "quant/analysis/diagnosis.hpp"

namespace quantrain::quant {

struct DiagnoseOptions {
  /// At most; spread over the data (a stream's: the first). If a TensorDataset has targets of up to
  /// 16 numbers, up to 16 samples follow whose targets lie farthest from the median.
  int64_t samples = 1024;
  int64_t alone_samples = 64;  ///< of these; a pass quantizes each layer alone on them
  int64_t worst = 4;           ///< number of worst samples to keep
};

/// Measures what quantization costs a prepared network on data, layer by layer, and what is wrong
/// with it. Runs the network as it is deployed, its integer program, and in FloatMode, on the same
/// batches, and compares. If the batches carry codes, the float pass begins with their values.
/// If the data set is larger than options.samples, the samples are spread over it: one from each of
/// as many equal parts, the same ones each time. Memory does not depend on the number of samples,
/// except for up to 16 MiB of input values, and, with targets, 32 bytes for each sample and output
/// channel. The network is left as it was.
/// Throws: GraphError if the network is not prepared; DataError if there is no sample, or naming the
/// layer if one of its values is NaN or infinite, if labels are out of range, or if an option is
/// not positive; ShapeError if targets have another shape than the outputs (targets [N, ...]
/// of an output [N, ..., 1] are taken); what convert() throws.
Diagnosis diagnose(Module& net, const DataLoader& data, const DiagnoseOptions& options = {});

}  // namespace quantrain::quant
