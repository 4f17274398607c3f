#include "tests/system.hpp"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <new>

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

bool run_again(const std::vector<std::pair<std::string, std::string>>& variables,
               const std::string& argument) {
  std::string command;
  for (const auto& [name, value] : variables) command += name + "='" + value + "' ";
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  command += "'" + program + "' '" + argument + "' > /dev/null";
  return std::system(command.c_str()) == 0;
}

}  // namespace quantrain::test
