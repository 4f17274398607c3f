#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "framework/autograd/integer_buffer.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// A parameter, or another entry of the state of a module, an optimizer or an observer, with its
/// path relative to the object that lists it: "block1.conv.weight". It holds floats or integers.
/// The handles share the values with the state itself.
struct NamedState {
  std::string name;
  Tensor tensor{};           ///< undefined if the entry holds integers
  IntegerBuffer integers{};  ///< undefined if it holds floats
  bool constant = false;     ///< saving writes the values, loading only compares them

  NamedState(std::string of, Tensor floats, bool fixed = false)
      : name(std::move(of)), tensor(std::move(floats)), constant(fixed) {}
  NamedState(std::string of, IntegerBuffer values, bool fixed = false)
      : name(std::move(of)), integers(std::move(values)), constant(fixed) {}

  bool holds_integers() const { return integers.defined(); }
  const Shape& shape() const& { return integers.defined() ? integers.shape() : tensor.shape(); }
  Shape shape() const&& { return shape(); }
  /// The values as a file stores them, valid as long as the entry.
  std::span<const uint8_t> bytes() const&;
  std::span<const uint8_t> bytes() const&& = delete;
  /// Throws: ShapeError unless both have the same type and shape; DataError if an integer is outside
  /// of the range of this entry. On an error, nothing changes. Allocates nothing.
  void copy_values(const NamedState& from);
  /// Throws what copy_values() throws, and changes nothing.
  void check_values(const NamedState& from, std::string_view where) const;
  /// A new entry with this name and these values. It is not constant.
  NamedState copy() const;
  /// Whether both have the same handles, under any names.
  bool same_as(const NamedState& other) const {
    return tensor.same_as(other.tensor) && integers.same_as(other.integers);
  }
};

}  // namespace quantrain
