#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace quantrain::fuzz {

/// A file of about a megabyte that makes its reader work as much as such a file can.
struct CostlyFile {
  std::string name;
  std::vector<uint8_t> bytes;
  std::function<void(std::span<const uint8_t>)> read;
  int64_t declared = 0;  ///< bytes of the pixels that an image or a gzipped array declares
};

/// Some for each reader.
std::vector<CostlyFile> costly_files();

}  // namespace quantrain::fuzz
