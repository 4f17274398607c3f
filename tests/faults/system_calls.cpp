#include "tests/faults/system_calls.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace {

using quantrain::test::CallFault;

struct Plan {
  bool active = false;
  bool all_after = false;
  int64_t left = 0;
  int number = 0;
  CallFault fault = CallFault::kError;
  const char* failed = nullptr;
};
thread_local Plan plan;

// Whether this call has to fail. If so, sets errno.
bool fails(const char* name) {
  if (!plan.active) return false;
  if (plan.failed != nullptr) {
    if (!plan.all_after || std::strcmp(name, plan.failed) != 0) return false;
  } else {
    if (plan.left-- > 0) return false;
    plan.failed = name;
  }
  errno = plan.number;
  return true;
}

int open_as(const char* path, int flags, mode_t mode) {
  if (fails("open")) return -1;
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

}  // namespace

// These functions replace those of the C library.
extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_as(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_as(path, flags, mode);
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  if (fails("write")) {
    if (plan.fault != CallFault::kShortWrite || count < 2) return -1;
    count /= 2;
  }
  return ::syscall(SYS_write, descriptor, bytes, count);
}

// Sets the error of the file, as the C library's function does.
size_t fread(void* bytes, size_t size, size_t count, FILE* file) {
  if (fails("fread")) {
    constexpr int kError = 0x20;  // _IO_ERR_SEEN
    file->_flags |= kError;
    return 0;
  }
  return ::fread_unlocked(bytes, size, count, file);
}

int pthread_create(pthread_t* thread,
                   const pthread_attr_t* attributes,
                   void* (*run)(void*),
                   void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  return fails("pthread_create") ? plan.number : create(thread, attributes, run, argument);
}

int fsync(int descriptor) {
  return fails("fsync") ? -1 : static_cast<int>(::syscall(SYS_fsync, descriptor));
}

// The descriptor is closed even if close() reports an error.
int close(int descriptor) {
  const bool failing = fails("close");
  const int number = errno;
  const auto result = static_cast<int>(::syscall(SYS_close, descriptor));
  if (!failing) return result;
  errno = number;
  return -1;
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  if (fails("linkat")) return -1;
  return static_cast<int>(::syscall(SYS_linkat, from_folder, from, to_folder, to, flags));
}

int rename(const char* from, const char* to) noexcept {
  if (fails("rename")) return -1;
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int unlink(const char* path) noexcept {
  return fails("unlink") ? -1 : static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}

int flock(int descriptor, int operation) noexcept {
  return fails("flock") ? -1 : static_cast<int>(::syscall(SYS_flock, descriptor, operation));
}

int fchmod(int descriptor, mode_t mode) noexcept {
  return fails("fchmod") ? -1 : static_cast<int>(::syscall(SYS_fchmod, descriptor, mode));
}

int access(const char* path, int mode) noexcept {
  return fails("access") ? -1 : static_cast<int>(::syscall(SYS_faccessat, AT_FDCWD, path, mode));
}

int stat(const char* path, struct stat* info) noexcept {
  return fails("stat") ? -1 : ::fstatat(AT_FDCWD, path, info, 0);
}

}  // extern "C"

namespace quantrain::test {

FailingCall::FailingCall(int64_t first, int number, CallFault fault, bool all_after) {
  plan = {.active = true, .all_after = all_after, .left = first, .number = number, .fault = fault};
}

FailingCall::~FailingCall() { plan.active = false; }

std::string FailingCall::name() const { return plan.failed == nullptr ? "" : plan.failed; }

}  // namespace quantrain::test
