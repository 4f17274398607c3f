#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace quantrain {

/// Base of every error that quantrain throws. what() reads "[where] text"; `where` names the
/// operation, layer or file. An error is thrown before work starts: nothing is recorded, written or
/// changed.
class Error : public std::runtime_error {
 public:
  /// The parts are streamed one after the other: Error("matmul", "inner dimensions differ: lhs ",
  /// a.shape()).
  template <class... Parts>
  explicit Error(std::string_view where, const Parts&... parts)
      : std::runtime_error(text("[", where, "] ", parts...)) {}

 private:
  template <class... Parts>
  static std::string text(const Parts&... parts) {
    std::ostringstream stream;
    (stream << ... << parts);
    return stream.str();
  }
};

/// Operands whose shapes do not fit each other or the operation.
class ShapeError : public Error {
  using Error::Error;
};
/// A graph that cannot be differentiated, prepared or lowered as it was recorded.
class GraphError : public Error {
  using Error::Error;
};
/// Quantization parameters, configurations or bounds that make no sense or are not there yet.
class QuantError : public Error {
  using Error::Error;
};
/// Data that cannot be used: files, labels, NaN, flags.
class DataError : public Error {
  using Error::Error;
};
/// A model that cannot be written in the form asked for.
class ExportError : public Error {
  using Error::Error;
};

}  // namespace quantrain
