#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "examples/common/audio.hpp"

namespace quantrain::examples {

/// What is wrong with a ball bearing: its outer race, its inner race or a ball is pitted.
enum class BearingFault { kNone, kOuterRace, kInnerRace, kBall };

inline constexpr std::array kBearingFaults{
    BearingFault::kOuterRace, BearingFault::kInnerRace, BearingFault::kBall};
std::string_view name_of(BearingFault fault);

/// The sound of a simulated machine at 16 kHz: noise, a few knocks from elsewhere, the shaft with
/// its harmonics, and the gear with its side bands. Each contact with a pit excites an impulse,
/// which rings at the housing's resonance. The loudness of the impulses depends on `severity`, in
/// [0, 1]. A pit of the inner race turns with the shaft through the loaded side of the bearing, so
/// its impulses grow and fade once per turn.
/// Source: Randall and Antoni 2011, "Rolling element bearing diagnostics - A tutorial", section 2
Sound bearing_sound(
    BearingFault fault, float severity, double seconds, uint64_t seed, uint64_t clip);

}  // namespace quantrain::examples
