#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "framework/core/shape.hpp"

namespace quantrain {

/// Counts in saved state are at most this: every count up to here is exact as a double.
inline constexpr int64_t kMostCount = int64_t{1} << 53;

struct IntegerOptions {
  int64_t value = 0;  ///< of all elements at first
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
};

/// Integers in the state of a module, an optimizer or an observer: a phase, zero points, counts. A
/// cheap handle; copies share the values. Each value always lies in [least, most], so whoever reads
/// one, perhaps after loading it from a file, need not check it.
class IntegerBuffer {
 public:
  /// An undefined buffer has no values.
  IntegerBuffer() = default;
  /// Throws: DataError unless least <= value <= most.
  explicit IntegerBuffer(const Shape& shape, const IntegerOptions& options = {});

  bool defined() const { return data_ != nullptr; }
  /// This function and those below throw GraphError if the buffer is undefined.
  const Shape& shape() const&;
  Shape shape() const&& { return shape(); }
  /// Row-major; valid as long as the buffer.
  std::span<const int64_t> values() const&;
  std::span<const int64_t> values() const&& = delete;
  int64_t least() const { return data().least; }
  int64_t most() const { return data().most; }
  /// The only value. Throws: ShapeError if there is not exactly one.
  int64_t item() const;

  /// Set all values; allocate nothing.
  /// Throws: ShapeError if the number of values does not fit the shape; DataError if a value lies
  /// outside of [least, most]. On an error, nothing changes.
  void set(std::span<const int64_t> values);
  void fill(int64_t value);
  /// Throws what set() throws, in a message with this place and name. Changes nothing.
  void check(std::span<const int64_t> values, std::string_view where, std::string_view name) const;

  /// Whether both handles refer to the same values.
  bool same_as(const IntegerBuffer& other) const { return data_ == other.data_; }

 private:
  struct Data {
    Shape shape;
    int64_t least;
    int64_t most;
    std::vector<int64_t> values;

    void check(int64_t value, size_t i, std::string_view where, std::string_view name) const;
  };
  Data& data() const;

  std::shared_ptr<Data> data_;
};

}  // namespace quantrain
