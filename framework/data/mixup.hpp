#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "framework/data/batch_source.hpp"

// Mixes each sample a with a random sample b: x = own * a + (1 - own) * b, and likewise their
// targets. own = max(t, 1 - t) with t from Beta(alpha, alpha), so that x is at least as close to a
// as to b.
// Source: Zhang et al. 2018, "mixup: Beyond Empirical Risk Minimization"
namespace quantrain {

/// Throws: DataError unless alpha is 0 (no mixup) or in [0.01, 1].
void check_mixup(double alpha);

/// The partner that a sample is mixed with.
struct MixPartner {
  int64_t index;
  float own;  ///< weight of the sample itself, in [0.5, 1]
};

/// A partner for each sample, chosen by the sample's own random numbers. Empty without mixup.
std::vector<MixPartner> mix_partners(const Pass& pass,
                                     std::span<const int64_t> indices,
                                     int64_t samples);

/// sample = own * sample + (1 - own) * other. Codes are mixed as numbers and rounded to the nearest
/// code.
void mix(const SampleView& sample, const SampleView& other, float own);

/// [B, classes]: `own` at the sample's label and 1 - own at the partner's label; 1 if both labels
/// are the same.
Tensor mixed_labels(std::span<const int32_t> labels,
                    const std::function<int32_t(size_t i)>& other_label,
                    std::span<const MixPartner> partners,
                    int64_t classes);

}  // namespace quantrain
