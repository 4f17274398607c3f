#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace quantrain::fuzz {

/// What a target does with an input; returns whether it was accepted. An Error is how an input is
/// refused; anything else that is thrown is a finding, and so is a call of finding().
bool accepts(std::span<const uint8_t> input);

/// One of the inputs that were accepted lately, number `i` modulo how many there are; empty: none.
std::span<const uint8_t> accepted_input(size_t i);

/// Ends the process with this text.
[[noreturn]] void finding(const std::string& text);

/// A file without a name that holds the input, for readers that take a path.
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
