#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "framework/arithmetic/qparams.hpp"
#include "framework/integer/input_encoding.hpp"

// The one rule by which calls refuse values that have no code. Data sets, prepared networks and the
// deployed model share it.
namespace quantrain::integer {

/// Calls with fewer samples say too little about a column: a few extreme rows are legitimate.
inline constexpr int64_t kLeastColumnSamples = 8;

/// The values of one input of a call that saturate when they become codes.
struct Saturated {
  int64_t values = 0;   ///< all of them
  int64_t outside = 0;  ///< those that saturate
  int64_t samples = 0;
  /// Those of each column, the index along the last axis; empty if they were not counted.
  std::span<const int64_t> columns{};
};

/// Whether the rule of kRefuseMost needs the columns.
constexpr bool needs_columns(Outside outside, int64_t samples) {
  return outside == Outside::kRefuseMost && samples >= kLeastColumnSamples;
}

/// Adds the values of x that saturate to their columns. May be called by several threads for the
/// same columns.
/// Shapes: x [..., columns].
void count_columns(std::span<const float> x,
                   const QParams& params,
                   const InputFeatures& features,
                   std::span<int64_t> columns);

inline constexpr std::string_view kSaturateAdvice =
    "pass values in the units of the training data, or Outside::kSaturate";

/// Refuses what `outside` refuses. name: of the input. advice: what to do instead.
/// Throws: DataError naming `where`, the input, the range and, if only a column is at fault, the
/// column.
void check_outside(Outside outside,
                   const Saturated& saturated,
                   const QParams& params,
                   const InputFeatures& features,
                   std::string_view where,
                   std::string_view name,
                   std::string_view advice = kSaturateAdvice);

/// One input of a call whose values are all at hand.
struct EncodedValues {
  std::span<const float> values;
  int64_t outside = 0;  ///< those that saturate, as encode_input() returned
  int64_t samples = 0;
  int64_t columns = 1;
};
/// The same; counts the columns if the rule needs them.
void check_outside(Outside outside,
                   const EncodedValues& encoded,
                   const QParams& params,
                   const InputFeatures& features,
                   std::string_view where,
                   std::string_view name,
                   std::string_view advice = kSaturateAdvice);

}  // namespace quantrain::integer
