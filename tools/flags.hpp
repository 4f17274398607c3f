#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/arithmetic/qparams.hpp"
#include "quant/prepare/qconfig.hpp"

// Flags that several verbs share, and how their values are read.
namespace quantrain::tools {

/// A flag with a value.
CLI::Option* flag(CLI::App& line,
                  const std::string& name,
                  std::string& value,
                  const std::string& placeholder,
                  const std::string& help);
CLI::Option* flag(CLI::App& line,
                  const std::string& name,
                  int64_t& value,
                  int64_t least,
                  int64_t most,
                  const std::string& help);
CLI::Option* flag(CLI::App& line, const std::string& name, double& value, const std::string& help);
/// A flag that may be given several times.
CLI::Option* flag(CLI::App& line,
                  const std::string& name,
                  std::vector<std::string>& values,
                  const std::string& placeholder,
                  const std::string& help);
/// The text after the flags in --help, and the examples of the manual page.
void example(CLI::App& line, const std::string& commands);

/// Parts of a text between separators; none for an empty text.
std::vector<std::string> parts(std::string_view text, char separator);
/// Names for a message: "a, b".
std::string joined(const std::vector<std::string>& names);
/// "0.5,1" as numbers.   Throws: WrongCall naming the flag if a part is no finite number.
std::vector<float> numbers(std::string_view name, std::string_view text);
std::vector<int64_t> integers(std::string_view name,
                              std::string_view text,
                              int64_t least,
                              int64_t most);
/// "64k" or "1M" as bytes; k is 1024.   Throws: WrongCall.
int64_t bytes(std::string_view name, std::string_view text);

/// --json, --all and --threads.
struct Common {
  bool json = false;
  bool all = false;
  int64_t threads = 0;

  void declare(CLI::App& line);
  /// Sets the number of threads.
  void apply() const;
};

/// How a float network is quantized.
inline constexpr const char* kOnlyForFloats =
    "and the other flags of the configuration are for networks of floats";
struct BitsFlags {
  int64_t bits = 8;
  int64_t weight_bits = 0;      ///< 0: bits
  int64_t activation_bits = 0;  ///< 0: bits
  std::vector<std::string> layers{};
  std::string observer{};
  std::string config{};
  bool learned = false;
  bool per_tensor = false;

  void declare(CLI::App& line);
  /// Whether a flag was given, other than --print-config.
  bool given() const;
  /// Throws: WrongCall; DataError if the configuration's file cannot be read; QuantError.
  quant::QConfig read() const;
};

/// --ram and --flash: what the network may take on a device.
struct Budget {
  std::string ram{};
  std::string flash{};

  void declare(CLI::App& line);
  bool given() const { return !ram.empty() || !flash.empty(); }
  /// Throws: WrongCall if a size cannot be read.
  void check_call() const;
  /// Throws: DataError with both numbers if more is needed.
  void check(int64_t ram_needed, int64_t flash_needed) const;
};

}  // namespace quantrain::tools
