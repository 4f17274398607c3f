#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "quant/export/onnx/exact.hpp"

// Operations as QuantizeLinear and DequantizeLinear around operators of floats.
namespace quantrain::onnx_export {

/// Pools of more elements, all sizes of their windows together, stay exact, because all sums of
/// their codes are tried.
inline constexpr int64_t kMostSummed = 1 << 16;

/// Adds the operators of a step, or nothing: false says that only the exact form is near enough to
/// the engine's integers, or that it is as fast. If `gives_reals`, a linear layer that ends the
/// network may give floats instead of accumulators (Export::reals).
bool add_qdq(Export& out, const integer::Step& step, bool gives_reals);

/// The scale of each output channel's weights, float32: the one of the step's origin if it fits the
/// multipliers, else the one that follows from them. Nothing if there is no positive normal scale.
std::optional<std::vector<float>> weight_scales(const integer::Program& program,
                                                const integer::Step& step);

// Half of a step is rounded up by (8), and by runtimes to even. Where the scales make such ties
// frequent, as few bits do, only the exact form gives the engine's codes.

/// The divisor of an average pool that has the same for all windows, or 0 if each window has its
/// count. Nothing if it is another pool, or if ties are frequent.
std::optional<int64_t> pool_divisor(const integer::Program& program, const integer::Step& step);
/// Whether a sum has two operands, and ties are rare.
bool is_pair_sum(const integer::Program& program, const integer::Step& step);
/// Whether ties of a multiplication are rare.
bool is_near_product(const integer::Program& program, const integer::Step& step);

}  // namespace quantrain::onnx_export
