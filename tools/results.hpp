#pragma once

#include <string>

#include "tools/model.hpp"
#include "tools/output.hpp"

namespace quantrain::tools {

inline constexpr const char* kNothingWritten =
    "Nothing was written: --output FILE keeps the integer model, --network FILE the prepared "
    "network.";

/// --output and --network: the files that quantize and finetune write.
struct ResultFlags {
  std::string output{};   ///< the integer model
  std::string network{};  ///< the prepared network

  void declare(CLI::App& line, const std::string& network_help);
  bool given() const { return !output.empty() || !network.empty(); }
  /// Adds the size on a device as facts, writes the files, and adds their names.
  void write(const IntegerModel& integers, const Network& net, Report& report) const;
};

}  // namespace quantrain::tools
