#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>

namespace quantrain {

/// Extents of a dense row-major array, outermost first. At most kMaxRank extents, stored inline. A
/// scalar has rank 0.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> extents)
      : Shape(std::span(extents.begin(), extents.size())) {}
  /// Throws: ShapeError if an extent is negative, the rank exceeds kMaxRank, or the product of the
  /// nonzero extents overflows.
  explicit Shape(std::span<const int64_t> extents);

  int rank() const { return rank_; }
  /// Extent of axis i; negative i counts from the end. Throws: ShapeError if axis i does not exist.
  int64_t operator[](int i) const;
  int64_t back() const { return (*this)[-1]; }
  /// Product of all extents; 1 for a scalar.
  int64_t elements() const;
  /// The index of axis i, in [0, rank). A negative i counts from the end.
  /// Throws: ShapeError if i is outside [-rank, rank).
  int axis(int i) const;

  const int64_t* begin() const& { return extents_.data(); }
  const int64_t* end() const& { return extents_.data() + rank_; }
  const int64_t* begin() const&& = delete;
  const int64_t* end() const&& = delete;
  operator std::span<const int64_t>() const& { return {begin(), end()}; }
  operator std::span<const int64_t>() && = delete;

  friend bool operator==(const Shape& a, const Shape& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::array<int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

/// Prints "[2, 3]".
std::ostream& operator<<(std::ostream& stream, const Shape& shape);

}  // namespace quantrain
