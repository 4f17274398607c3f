#include "framework/data/mixup.hpp"

#include <algorithm>
#include <cmath>

#include "framework/core/error.hpp"

namespace quantrain {
namespace {

// This constant is combined with the seed. Mixup thus has its own random numbers, and augmentation
// draws the same numbers with and without mixup.
constexpr uint64_t kMixSeed = 0x6d69787570u;

/// x^e for x in [0, 1) and e >= 1. Uses only products and square roots, so the result is the same
/// on every machine.
double power(double x, double e) {
  const double whole = std::floor(e);
  double result = 1.0;
  for (double i = 0.0; i < whole; ++i) result *= x;
  double root = x;
  double rest = e - whole;
  for (int bit = 0; bit < 30 && rest > 0.0; ++bit) {
    root = std::sqrt(root);
    rest *= 2.0;
    if (rest < 1.0) continue;
    result *= root;
    rest -= 1.0;
  }
  return result;
}

/// Jöhnk's algorithm for Beta(alpha, alpha), alpha <= 1.
double beta(double alpha, Random& random) {
  for (;;) {
    const double a = power(double{random.uniform()}, 1.0 / alpha);
    const double b = power(double{random.uniform()}, 1.0 / alpha);
    if (a + b > 0.0 && a + b <= 1.0) return a / (a + b);
  }
}

}  // namespace

void check_mixup(double alpha) {
  constexpr double kLeast = 0.01;
  if (alpha == 0.0 || (alpha >= kLeast && alpha <= 1.0)) return;
  throw DataError(
      "mixup", "alpha is ", alpha, ", expected 0 (none) or ", kLeast, " to 1; 0.2 is usual");
}

std::vector<MixPartner> mix_partners(const Pass& pass,
                                     std::span<const int64_t> indices,
                                     int64_t samples) {
  std::vector<MixPartner> partners;
  if (pass.mixup == 0.0) return partners;
  partners.reserve(indices.size());
  for (const int64_t index : indices) {
    Random random(
        pass.seed ^ kMixSeed, static_cast<uint64_t>(pass.epoch), static_cast<uint64_t>(index));
    const int64_t partner = random.below(samples);
    const double t = beta(pass.mixup, random);
    partners.push_back({partner, static_cast<float>(std::max(t, 1.0 - t))});
  }
  return partners;
}

void mix(const SampleView& sample, const SampleView& other, float own) {
  for (size_t i = 0; i < sample.floats.size(); ++i)
    sample.floats[i] = own * sample.floats[i] + (1.0f - own) * other.floats[i];
  for (size_t i = 0; i < sample.pixels.size(); ++i) {
    const float mixed = own * static_cast<float>(sample.pixels[i]) +
                        (1.0f - own) * static_cast<float>(other.pixels[i]);
    sample.pixels[i] = static_cast<uint8_t>(std::min(mixed + 0.5f, 255.0f));
  }
}

Tensor mixed_labels(std::span<const int32_t> labels,
                    const std::function<int32_t(size_t i)>& other_label,
                    std::span<const MixPartner> partners,
                    int64_t classes) {
  Tensor target = Tensor::zeros({static_cast<int64_t>(labels.size()), classes});
  float* row = target.mutable_data();
  for (size_t i = 0; i < labels.size(); ++i, row += classes) {
    row[labels[i]] += partners[i].own;
    row[other_label(i)] += 1.0f - partners[i].own;
  }
  return target;
}

}  // namespace quantrain
