#pragma once

#include <array>

#include "quant/prepare/methods/lsq.hpp"
#include "quant/prepare/methods/lsq_plus.hpp"
#include "quant/prepare/methods/pact.hpp"

namespace quantrain::quant {

/// How the gradient passes through a fake quantization, and where the scale comes from.
/// docs/quantization.md (4), (29)
enum class Estimator {
  kClamped,        ///< straight through inside the representable range, 0 outside
  kPlain,          ///< straight through everywhere
  kLearned,        ///< clamped, and the scale is a parameter (LSQ)
  kLearnedOffset,  ///< clamped, and scale and zero point are parameters (LSQ+); activations only
  kPact,           ///< the end of the range is a parameter (PACT); activations only
};

struct EstimatorKind {
  Estimator estimator;
  const char* name;             ///< in JSON
  const LearnedRange* learned;  ///< null if the range is not learned
};

inline const Lsq kLsq;
inline const LsqPlus kLsqPlus;
inline const Pact kPactRange;

/// All estimators.
inline const std::array<EstimatorKind, 5> kEstimatorKinds{{
    {Estimator::kClamped, "clamped", nullptr},
    {Estimator::kPlain, "plain", nullptr},
    {Estimator::kLearned, "learned", &kLsq},
    {Estimator::kLearnedOffset, "learned_offset", &kLsqPlus},
    {Estimator::kPact, "pact", &kPactRange},
}};

/// Null if the estimator learns no range.
inline const LearnedRange* learned_range(Estimator estimator) {
  return kEstimatorKinds.at(static_cast<size_t>(estimator)).learned;
}
inline bool is_learned(Estimator estimator) { return learned_range(estimator) != nullptr; }

}  // namespace quantrain::quant
