#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "framework/core/path.hpp"
#include "framework/core/system/process.hpp"

namespace quantrain::test {

/// A new folder, which is removed with this object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    static std::atomic<int> number{0};
    const std::string name =
        "quantrain-test-" + std::to_string(system::process_id()) + "-" + std::to_string(++number);
    path_ = std::filesystem::temp_directory_path() / name;
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path() const { return to_text(path_); }
  std::string operator/(const std::string& name) const { return path() + '/' + name; }
  int64_t files() const {
    return std::distance(std::filesystem::directory_iterator(path_),
                         std::filesystem::directory_iterator());
  }

 private:
  std::filesystem::path path_;
};

inline void write_bytes(const std::string& path, std::span<const uint8_t> bytes) {
  std::filesystem::remove(
      to_path(path));  // some file systems flush a file that is truncated and rewritten
  std::ofstream file(to_path(path), std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

inline std::vector<uint8_t> read_bytes(const std::string& path) {
  std::ifstream file(to_path(path), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline std::string text_of(const std::string& path) {
  const std::vector<uint8_t> bytes = read_bytes(path);
  return {bytes.begin(), bytes.end()};
}

}  // namespace quantrain::test
