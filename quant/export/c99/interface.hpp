#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/integer/program.hpp"

// The public interface of an exported network: its header.
namespace quantrain::c99 {

struct Parameter {
  std::string parameter;  ///< "input", "input_0"
  std::string macro;      ///< "DIGITS_INPUT", "DIGITS_INPUT_0"
  std::string type;       ///< C type of an output: "digits_output"
  std::string element;    ///< "uint8_t" or "int32_t"
  int64_t size = 0;       ///< number of elements
  /// Of an output whose rows have classes: "digits_class", the C function that returns a row's
  /// class; its factors (integer::class_factors), one for each class, or none if all integers share
  /// a scale. Empty if the output has no classes.
  std::string class_function{};
  std::vector<int32_t> class_factors{};
  int value = 0;  ///< position of the value in Program::values
};

struct Interface {
  std::string name;   ///< "digits"
  std::string macro;  ///< "DIGITS"
  std::vector<Parameter> inputs, outputs;
  int64_t scratch_bytes = 0;
  std::string parameters;    ///< of digits_run: "const uint8_t *input, ..., void *scratch"
  bool has_classes = false;  ///< whether there is digits_classify: a sample has one class
};

Interface make_interface(const integer::Program& program,
                         const std::string& name,
                         int64_t scratch_bytes);
/// hash: of the user's network, before its dead channels are removed.
std::string header_text(const Interface& interface,
                        const integer::Program& program,
                        uint64_t hash,
                        int64_t table_bytes);

}  // namespace quantrain::c99
