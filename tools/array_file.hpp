#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quantrain::tools {

/// An array to write: floats or integers.
struct ArrayFile {
  std::vector<int64_t> shape{};
  std::vector<float> floats{};
  std::vector<int32_t> integers{};
};

/// Writes a .npy (f4 or i4), or a .csv with a row for each index of the first axis. names: texts
/// for integers, as a second column of a .csv with one column.
/// Throws: DataError if the file cannot be written.
void write_array(const std::string& path,
                 const ArrayFile& array,
                 const std::vector<std::string>& names = {});

}  // namespace quantrain::tools
