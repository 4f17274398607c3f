#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/arithmetic/stored.hpp"
#include "layers/onnx/graph_builder.hpp"

// Rule (8) of docs/quantization.md in ONNX's integer operators.
namespace quantrain::onnx_export {

std::string cast(onnx::GraphBuilder& graph, const std::string& x, onnx::ElementType type);

/// clamp(((p + offset + 2^(shift-1)) >> shift) + zero_point, lo, hi), as uint8, of int64 products
/// p.
struct Shift {
  std::vector<int64_t> dims;   ///< of the shifts, which broadcast to the products
  std::vector<int32_t> shift;  ///< 1 to 62
  int64_t bound = 0;           ///< |p + offset| is at most this
  int64_t offset = 0;
  StoredOutput y;
};
std::string rounding_shift(onnx::GraphBuilder& graph, const std::string& product, Shift shift);

/// rounding_shift() of sum * m0. The sums are int32 or int64.   docs/quantization.md (8)
struct Requantize {
  std::vector<int64_t> dims;  ///< of m0 and shift, which broadcast to the sums
  std::vector<int32_t> m0;
  std::vector<int32_t> shift;
  int64_t bound = 0;  ///< |sum| is at most this
  StoredOutput y;
};
std::string requantize(onnx::GraphBuilder& graph, const std::string& sum, Requantize r);

}  // namespace quantrain::onnx_export
