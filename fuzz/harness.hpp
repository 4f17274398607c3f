#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace quantrain::fuzz {

/// Runs the target on an input; each target defines this function. Returns true if it accepts the
/// input. To refuse the input, it returns false or throws an Error. Any other exception is a
/// finding, and so is a call of finding().
bool accepts(std::span<const uint8_t> input);

/// One of the recently accepted inputs: number `i` modulo their count. Empty if there are none.
std::span<const uint8_t> accepted_input(size_t i);

/// Prints the text and aborts the process.
[[noreturn]] void finding(const std::string& text);

/// An unnamed file in memory that holds the input, for readers that take a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const uint8_t> bytes);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const;

 private:
  int descriptor_;
};

}  // namespace quantrain::fuzz
