#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Checks operations whose sums can be long: compares up to 16 results of each operation with the
// same results computed in double. The terms of a sum all have one sign. For the tests and for the
// long proof.
namespace quantrain::test {

/// The operands' elements are drawn uniformly from [low, high). Most terms are elements or products
/// of two elements.
struct Range {
  const char* name;
  float low, high;
};

/// Terms just above 1 are the hard case: they differ only in the digits after the 1, and a long sum
/// that adds them one after the other loses these digits.
inline constexpr Range kRanges[] = {
    {"[0, 1)", 0.0f, 1.0f}, {"[1, 1.001)", 1.0f, 1.001f}, {"[1, 1.0001)", 1.0f, 1.0001f}};

/// own: the largest relative error of an operation's results. pairwise: the largest relative error
/// of pairwise sums of the same terms in float32. A pairwise sum adds the sums of two halves, and
/// has about one rounding for each doubling of its length.
struct SumErrors {
  double own, pairwise;

  /// Four times the error of the pairwise sums, and at least four units in the last place.
  double bound() const;
};

struct LongSum {
  std::string name;
  /// The most terms that are checked: 10 million, but fewer if the operands would then exceed a
  /// gigabyte, or if no layer sums that many terms.
  int64_t most;
  SumErrors (*run)(int64_t terms, const Range& range);
};

const std::vector<LongSum>& long_sums();

}  // namespace quantrain::test
