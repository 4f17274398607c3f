#include "tests/system.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <system_error>
#include <thread>

#include "tests/temporary_folder.hpp"

namespace quantrain::test {
namespace {

size_t page_size() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

GuardedMemory guarded_memory(size_t least_bytes, bool guards) {
  const size_t page = page_size();
  GuardedMemory memory{.bytes = (least_bytes + page - 1) / page * page};
  const size_t mapped = memory.bytes + page;
  void* const first =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (first == MAP_FAILED) throw std::bad_alloc();
  memory.first = static_cast<char*>(first);
  if (guards && ::mprotect(memory.first + memory.bytes, page, PROT_NONE) != 0) {
    release(memory);
    throw std::bad_alloc();
  }
  return memory;
}

void release(const GuardedMemory& memory) { ::munmap(memory.first, memory.bytes + page_size()); }

void trim_memory() { ::malloc_trim(0); }

void grow_file(const std::string& path, int64_t bytes) {
  std::filesystem::resize_file(path, static_cast<uintmax_t>(bytes));
}

bool on_one_processor(const std::function<void()>& f) {
  bool is_set = false;
#if defined(CPU_ALLOC)
  // The mask of this thread is the mask that counts.
  std::thread([&] {
    cpu_set_t mask;
    if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return;
    int first = 0;
    while (!CPU_ISSET(first, &mask)) ++first;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    is_set = ::sched_setaffinity(0, sizeof mask, &mask) == 0;
    if (is_set) f();
  }).join();
#else
  static_cast<void>(f);
#endif
  return is_set;
}

std::string printed(const std::function<void()>& f) {
  const TemporaryFolder folder;
  const std::string path = folder / "output";
  std::fflush(stdout);
  const int before = ::dup(STDOUT_FILENO);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  ::dup2(file, STDOUT_FILENO);
  ::close(file);
  f();
  std::fflush(stdout);
  ::dup2(before, STDOUT_FILENO);
  ::close(before);
  return text_of(path);
}

void make_pipe(const std::string& path) {
  if (::mkfifo(path.c_str(), 0600) != 0)
    throw std::system_error(errno, std::generic_category(), path);
}

void remove_folder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

bool left_out_on_windows(const char*) { return false; }

bool run_again(const std::vector<std::pair<std::string, std::string>>& variables,
               const std::string& argument) {
  std::string command;
  for (const auto& [name, value] : variables) command += name + "='" + value + "' ";
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  command += "'" + program + "' '" + argument + "' > /dev/null";
  return std::system(command.c_str()) == 0;
}

}  // namespace quantrain::test
