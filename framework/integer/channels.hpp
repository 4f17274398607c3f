#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

// What operations state about the channels of their inputs and output. A channel is an index of the
// last axis.
namespace quantrain::integer {

/// An interval of possible codes or sums.
struct Interval {
  int64_t lo = 0;
  int64_t hi = 255;

  bool constant() const { return lo == hi; }
  Interval operator+(const Interval& other) const { return {lo + other.lo, hi + other.hi}; }
  Interval joined(const Interval& other) const {
    return {std::min(lo, other.lo), std::max(hi, other.hi)};
  }
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// The interval of each channel of a value. Element i of the value belongs to channel i % size().
using Channels = std::vector<Interval>;
/// The intervals of each input of an operation.
using InputChannels = std::span<const Channels* const>;

/// The union of all intervals.
Interval all_of(const Channels& channels);
/// Repeats the intervals for `count` channels. If count is not a multiple of the number of
/// intervals, each channel gets the union of all intervals.
Channels over(const Channels& channels, int64_t count);
/// w * (x - zero) for x in the interval.
Interval product_of(int64_t w, const Interval& x, int32_t zero);
/// The image of x under a function that never decreases.
template <class Function>
Interval through(const Interval& x, const Function& function) {
  return {function(x.lo), function(x.hi)};
}

/// Which channels of the inputs a channel of the output reads.
enum class ChannelUse {
  kSame,   ///< the same channel of each input
  kAll,    ///< possibly every channel
  kOther,  ///< it depends on the operation's numbers; dead_channels.cpp has the rule
};

/// How many of `elements` elements remain without the dead channels. Element i belongs to channel
/// i % dead.size(). `elements` must be a multiple of dead.size() if a channel is dead.
int64_t without_dead(const std::vector<bool>& dead, int64_t elements);

}  // namespace quantrain::integer
