#include "framework/core/system/process.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <initializer_list>

namespace quantrain::system {

int64_t process_id() { return ::getpid(); }

int processors_of_mask() {
#if defined(CPU_ALLOC)
  // The kernel refuses a mask that is too small for the machine.
  for (int most = 1024; most <= 1 << 20; most *= 4) {
    cpu_set_t* const mask = CPU_ALLOC(static_cast<size_t>(most));
    if (mask == nullptr) return 0;
    const size_t size = CPU_ALLOC_SIZE(static_cast<size_t>(most));
    const int count = ::sched_getaffinity(0, size, mask) == 0 ? CPU_COUNT_S(size, mask) : 0;
    CPU_FREE(mask);
    if (count > 0) return count;
  }
#endif
  return 0;
}

int64_t peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;  // Linux counts in KiB
}

bool random_bits(uint64_t& bits) { return ::getentropy(&bits, sizeof bits) == 0; }

void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  ::pthread_atfork(before, in_parent, in_child);
}

bool is_terminal(std::FILE* stream) { return ::isatty(::fileno(stream)) != 0; }

void on_interrupt(void (*handler)(int)) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    // What the caller ignores, such as a hangup under nohup, stays ignored.
    if (std::signal(number, SIG_IGN) != SIG_IGN) std::signal(number, handler);
  }
  // A reader that has seen enough, such as head, ends the program without a word.
  std::signal(SIGPIPE, SIG_DFL);
}

void write_error(const char* text) {
  static_cast<void>(!::write(STDERR_FILENO, text, std::strlen(text)));
}

Arguments start_program(int count, const char* const* values) { return {count, values}; }

}  // namespace quantrain::system
