#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace quantrain::test {

/// A .npy file with this header text, followed by the data.
inline std::vector<uint8_t> npy_of(const std::string& header,
                                   const std::vector<uint8_t>& data,
                                   int version = 1) {
  std::vector<uint8_t> file{0x93, 'N', 'U', 'M', 'P', 'Y', static_cast<uint8_t>(version), 0};
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    file.push_back(static_cast<uint8_t>(header.size() >> (8 * i)));
  file.insert(file.end(), header.begin(), header.end());
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

/// A .npy file whose header has these three entries, as NumPy writes them.
inline std::vector<uint8_t> npy(const std::string& descr,
                                const std::string& shape,
                                const std::vector<uint8_t>& data,
                                int version = 1,
                                bool fortran = false) {
  std::string header = "{'descr': '" + descr +
                       "', 'fortran_order': " + (fortran ? "True" : "False") +
                       ", 'shape': " + shape + ", }";
  const size_t before = version == 1 ? 10 : 12;
  header.append(63 - (before + header.size()) % 64, ' ');
  return npy_of(header + '\n', data, version);
}

/// The bytes of these values.
template <class T>
std::vector<uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace quantrain::test
