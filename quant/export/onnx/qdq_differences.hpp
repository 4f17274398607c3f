#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/integer/program.hpp"

namespace quantrain {

/// What a runtime that rounds in float32 makes of a layer's codes.
struct QdqDifference {
  std::string layer;
  int64_t codes = 0;      ///< that were compared
  int64_t different = 0;  ///< codes that the runtime rounds to another integer
  int32_t most = 0;       ///< the largest difference of two codes

  double share() const {
    return codes == 0 ? 0.0 : static_cast<double>(different) / static_cast<double>(codes);
  }
};

/// For each step that OnnxForm::kQdq leaves to the runtime: how many codes differ from the
/// engine's, if the step gets the engine's codes. Convolutions and linear layers are computed as in
/// ONNX Runtime's CPU kernels: half_even(f32(acc) f32(scale_x scale_w / scale_y)) + zero_y; sums,
/// products and means in float32. `samples` holds codes, one sample after another; with several
/// inputs, all samples of the first input come first.
/// Throws: ShapeError unless `samples` holds whole samples, at least one; what integer::validate()
/// throws.
std::vector<QdqDifference> qdq_differences(const integer::Program& program,
                                           std::span<const uint8_t> samples);

}  // namespace quantrain
