#include "examples/data/bearing.hpp"

#include <cmath>
#include <numbers>

#include "framework/core/random.hpp"

namespace quantrain::examples {
namespace {

constexpr double kTurn = 2.0 * std::numbers::pi;
// Impulses per turn of the shaft, for a bearing with 9 balls whose diameter is 0.2 of the pitch
// diameter.
constexpr double kOuterRaceRate = 3.6;
constexpr double kInnerRaceRate = 5.4;
constexpr double kBallRate = 2.4;

double rate_of(BearingFault fault) {
  if (fault == BearingFault::kOuterRace) return kOuterRaceRate;
  return fault == BearingFault::kInnerRace ? kInnerRaceRate : kBallRate;
}

/// Adds a * exp(-t / decay) * sin(2 pi f t) from sample `begin` on, for 6 * decay seconds.
void ring(Sound& sound, int64_t begin, double a, double decay, double f) {
  const auto rate = static_cast<double>(sound.rate);
  const auto samples = static_cast<int64_t>(sound.samples.size());
  const auto length = static_cast<int64_t>(6.0 * decay * rate);
  for (int64_t i = begin; i < std::min(samples, begin + length); ++i) {
    const double t = static_cast<double>(i - begin) / rate;
    sound.samples[static_cast<size_t>(i)] +=
        static_cast<float>(a * std::exp(-t / decay) * std::sin(kTurn * f * t));
  }
}

void add_tone(Sound& sound, double a, double f, double phase) {
  for (size_t i = 0; i < sound.samples.size(); ++i) {
    const double t = static_cast<double>(i) / static_cast<double>(sound.rate);
    sound.samples[i] += static_cast<float>(a * std::sin(kTurn * (f * t + phase)));
  }
}

void add_impulses(Sound& sound, BearingFault fault, double a, double shaft, Random& random) {
  const auto rate = static_cast<double>(sound.rate);
  const double period = 1.0 / (shaft * rate_of(fault));
  const double resonance = random.uniform(2900.0f, 3300.0f);
  const double end = static_cast<double>(sound.samples.size()) / rate;
  for (double t = period * random.uniform(); t < end;
       t += period * (1.0 + 0.01 * random.normal())) {
    const bool turns = fault == BearingFault::kInnerRace;
    const double load = turns ? 0.5 + 0.5 * std::cos(kTurn * shaft * t) : 1.0;
    ring(sound, static_cast<int64_t>(t * rate), a * load, 1.2e-3, resonance);
  }
}

}  // namespace

std::string_view name_of(BearingFault fault) {
  if (fault == BearingFault::kNone) return "none";
  if (fault == BearingFault::kOuterRace) return "outer race";
  return fault == BearingFault::kInnerRace ? "inner race" : "ball";
}

Sound bearing_sound(
    BearingFault fault, float severity, double seconds, uint64_t seed, uint64_t clip) {
  Random random(seed, clip);
  Sound sound;
  sound.samples.resize(static_cast<size_t>(seconds * static_cast<double>(sound.rate)));
  const double shaft = random.uniform(23.0f, 27.0f);
  for (int harmonic = 1; harmonic <= 6; ++harmonic) {
    const double a = 0.08 / harmonic * random.uniform(0.7f, 1.3f);
    add_tone(sound, a, shaft * harmonic, random.uniform());
  }
  constexpr int kTeeth = 17;
  for (int order = 1; order <= 2; ++order) {
    for (int side = -1; side <= 1; ++side) {
      const double a = (side == 0 ? 0.04 : 0.012) / order * random.uniform(0.7f, 1.3f);
      add_tone(sound, a, shaft * (kTeeth * order + side), random.uniform());
    }
  }
  const float loudness = random.uniform(0.012f, 0.02f);
  float low = 0.0f;
  for (float& sample : sound.samples) {
    const float noise = random.normal();
    low = 0.9f * low + 0.1f * noise;
    sample += loudness * (0.5f * noise + 3.0f * low);
  }
  for (int64_t knock = random.below(4); knock > 0; --knock) {
    const int64_t at = random.below(static_cast<int64_t>(sound.samples.size()));
    ring(sound, at, random.uniform(0.02f, 0.1f), 4e-3, random.uniform(600.0f, 4000.0f));
  }
  if (fault != BearingFault::kNone)
    add_impulses(sound, fault, 0.12 * double{severity}, shaft, random);
  return sound;
}

}  // namespace quantrain::examples
