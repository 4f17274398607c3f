#pragma once

#include <initializer_list>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace quantrain {

namespace detail {
/// One part of a message. It is type-erased, so that the many places that throw do not each compile
/// stream code.
struct Part {
  const void* value;
  void (*print)(std::ostream& stream, const void* value);
};
template <class T>
Part part(const T& value) {
  return {&value, [](std::ostream& stream, const void* erased) {
            stream << *static_cast<const T*>(erased);
          }};
}
inline Part part(const char* value) {
  return {value,
          [](std::ostream& stream, const void* text) { stream << static_cast<const char*>(text); }};
}
/// "[where] " and the parts, streamed one after the other.
std::string text(std::string_view where, std::span<const Part> parts);
}  // namespace detail

/// Base of every error that quantrain throws. what() reads "[where] text"; `where` names the
/// operation, layer or file. Unless a function says otherwise, errors are thrown before work
/// starts, so nothing has been recorded, written or changed.
class Error : public std::runtime_error {
 public:
  /// The parts are streamed one after the other: Error("matmul", "inner dimensions differ: lhs ",
  /// a.shape()).
  template <class... Parts>
  explicit Error(std::string_view where, const Parts&... parts)
      : Error(where, std::initializer_list<detail::Part>{detail::part(parts)...}) {}

 private:
  Error(std::string_view where, std::initializer_list<detail::Part> parts)
      : std::runtime_error(detail::text(where, {parts.begin(), parts.size()})) {}
};

/// Operands whose shapes do not fit each other or the operation.
class ShapeError : public Error {
  using Error::Error;
};
/// A graph that cannot be differentiated, prepared or lowered as it was recorded.
class GraphError : public Error {
  using Error::Error;
};
/// Quantization parameters, configurations or bounds that are invalid or not set yet.
class QuantError : public Error {
  using Error::Error;
};
/// Data that cannot be used: files, labels, NaN, flags.
class DataError : public Error {
  using Error::Error;
};
/// A model that cannot be written in the requested format.
class ExportError : public Error {
  using Error::Error;
};

}  // namespace quantrain
