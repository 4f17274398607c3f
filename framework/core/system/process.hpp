#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

// This process as the operating system sees it.
namespace quantrain::system {

int64_t process_id();
/// How many processors its affinity mask has; 0 if the system does not say.
int processors_of_mask();
/// The most memory that it has held so far, in bytes.
int64_t peak_memory();
/// Random bits that no other process has. Returns false if the system has none.
bool random_bits(uint64_t& bits);

/// Calls these functions around each fork() from now on. A null pointer is no function. Does
/// nothing on systems without fork().
void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

/// Whether the stream is a terminal that people see, which understands escape sequences.
bool is_terminal(std::FILE* stream);
/// Calls the function when the process is asked to end, by Ctrl-C, its terminal or its system. What
/// the process ignores stays ignored. And if the reader of its output has gone, the process ends.
void on_interrupt(void (*handler)(int));
/// Writes to standard error, from within that function.
void write_error(const char* text);

/// The arguments of main() in UTF-8.
class Arguments {
 public:
  Arguments(int count, const char* const* values);
  int count() const { return static_cast<int>(values_.size()) - 1; }
  /// As main() has them: a null pointer follows the last one.
  const char* const* values() const { return values_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<const char*> values_;
};

}  // namespace quantrain::system
