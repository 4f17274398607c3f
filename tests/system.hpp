#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

// What tests need of the operating system; in tests/system/posix and tests/system/windows.
namespace quantrain::test {

/// Memory before a page that nobody may access.
struct GuardedMemory {
  char* first = nullptr;
  size_t bytes = 0;  ///< before the page, a multiple of its size
};
/// guards: whether the page is protected.
/// Throws: std::bad_alloc
GuardedMemory guarded_memory(size_t least_bytes, bool guards);
void release(const GuardedMemory& memory);

/// Gives freed memory back to the system.
void trim_memory();

/// Makes a file so large. What is added takes no room on the disk.
/// Throws: std::system_error
void grow_file(const std::string& path, int64_t bytes);

/// Calls f in a thread that may run on one processor only, and returns true. Returns false, without
/// a call, on systems where this cannot be set.
bool on_one_processor(const std::function<void()>& f);

/// What f prints on standard output.
std::string printed(const std::function<void()>& f);

/// Makes a named pipe. Windows has none in folders.
/// Throws: std::system_error
void make_pipe(const std::string& path);

/// Removes a folder and what it contains, also if paths are longer than 260 characters.
void remove_folder(const std::string& path);

/// Whether the running test must be left out, because it needs what only POSIX systems have. If so,
/// prints its name and the reason.
bool left_out_on_windows(const char* reason);

/// Starts this program again with one argument and these environment variables, and tells whether
/// it succeeded.
bool run_again(const std::vector<std::pair<std::string, std::string>>& variables,
               const std::string& argument);

}  // namespace quantrain::test
