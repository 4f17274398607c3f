#include "framework/core/shape.hpp"

#include <ostream>

#include "framework/core/error.hpp"

namespace quantrain {

Shape::Shape(std::span<const int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  if (extents.size() > kMaxRank) {
    throw ShapeError("shape", "rank ", extents.size(), " exceeds ", kMaxRank);
  }
  std::copy(extents.begin(), extents.end(), extents_.begin());
  int64_t elements = 1;
  for (const int64_t extent : extents) {
    if (extent < 0) throw ShapeError("shape", "negative extent in ", *this);
    // An empty axis is skipped, so that the product of the other axes is still checked.
    if (extent == 0) continue;
    if (__builtin_mul_overflow(elements, extent, &elements))
      throw ShapeError("shape", "too many elements in ", *this);
  }
}

int Shape::axis(int i) const {
  if (i < -rank_ || i >= rank_) throw ShapeError("shape", "no axis ", i, " in ", *this);
  return i < 0 ? i + rank_ : i;
}

int64_t Shape::operator[](int i) const { return extents_[static_cast<size_t>(axis(i))]; }

int64_t Shape::elements() const {
  int64_t elements = 1;
  for (const int64_t extent : *this) elements *= extent;
  return elements;
}

std::ostream& operator<<(std::ostream& stream, const Shape& shape) {
  stream << '[';
  for (int i = 0; i < shape.rank(); ++i) stream << (i ? ", " : "") << shape[i];
  return stream << ']';
}

}  // namespace quantrain
