#pragma once

#include <cstdint>
#include <cstdio>

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

/// The arguments of main(). A null pointer follows the last one.
struct Arguments {
  int count = 0;
  const char* const* values = nullptr;
};
/// Lets a program start on Windows as on other systems, where this does nothing. The arguments that
/// it returns are UTF-8, a console shows UTF-8 until the process ends, and standard input gives
/// bytes as they are: otherwise Windows changes ends of lines, and the byte 26 ends the input.
Arguments start_program(int count, const char* const* values);

}  // namespace quantrain::system
