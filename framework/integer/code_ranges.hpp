#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "framework/integer/program.hpp"

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

/// The possible codes of each channel of each value, if the inputs may hold any bytes.
/// docs/quantization.md (19)
class CodeRanges {
 public:
  /// The program must be valid.
  explicit CodeRanges(const Program& program);

  /// Throws: GraphError if the program has no such value.
  const Channels& at(int id) const&;
  Channels at(int id) && { return at(id); }

 private:
  std::vector<Channels> of_;
};

}  // namespace quantrain::integer
