#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "framework/data/batch_source.hpp"

// Samples that are mixtures of two: x = own * a + (1 - own) * b, and targets alike. own is
// max(t, 1 - t) of a t from Beta(alpha, alpha), so that a sample stays nearer to itself.
// Source: Zhang et al. 2018, "mixup: Beyond Empirical Risk Minimization"
namespace quantrain {

/// Throws: DataError unless alpha is 0, which is none, or in [0.01, 1].
void check_mixup(double alpha);

/// With whom a sample is mixed.
struct MixPartner {
  int64_t index;
  float own;  ///< in [0.5, 1]
};

/// For each sample, drawn from its own random numbers; none without mixup.
std::vector<MixPartner> mix_partners(const Pass& pass,
                                     std::span<const int64_t> indices,
                                     int64_t samples);

/// sample = own * sample + (1 - own) * other; codes are mixed as codes, rounded to the nearest.
void mix(const SampleView& sample, const SampleView& other, float own);

/// [B, classes]: own at the sample's label and 1 - own at the other's, their sum where both agree.
Tensor mixed_labels(std::span<const int32_t> labels,
                    const std::function<int32_t(size_t i)>& other_label,
                    std::span<const MixPartner> partners,
                    int64_t classes);

}  // namespace quantrain
