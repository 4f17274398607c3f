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

/// A machine that is not there, for so many seconds at 16 kHz: its shaft, with harmonics; its gear,
/// with side bands; noise, and now and then a knock from elsewhere. A pit gives an impulse each
/// time that it is rolled over, which rings at the housing's resonance; how loud depends on its
/// severity, in [0, 1]. The inner race turns through the load, and its impulses come and go with
/// the shaft.
/// Source: Randall and Antoni 2011, "Rolling element bearing diagnostics - A tutorial", section 2
Sound bearing_sound(
    BearingFault fault, float severity, double seconds, uint64_t seed, uint64_t clip);

}  // namespace quantrain::examples
