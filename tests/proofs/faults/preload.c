/* A library for LD_PRELOAD. File calls are counted. Call number FAULT_AT fails with errno FAULT_ERRNO, or, if
 * FAULT_ERRNO is "kill", the process kills itself before the call. At the end, the number of calls is written to
 * the file descriptor FAULT_COUNT. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static long calls = 0;
static long at = -1;
static int number = 0;

__attribute__((constructor)) static void begin(void) {
  const char *const point = getenv("FAULT_AT"), *const kind = getenv("FAULT_ERRNO");
  if (point != NULL) at = strtol(point, NULL, 10);
  if (kind != NULL) number = strcmp(kind, "kill") == 0 ? -1 : atoi(kind);
}

__attribute__((destructor)) static void end(void) {
  const char *const file = getenv("FAULT_COUNT");
  if (file != NULL) dprintf(atoi(file), "%ld\n", calls);
}

static int fails(void) {
  if (calls++ != at) return 0;
  if (number < 0) kill(getpid(), SIGKILL);
  errno = number;
  return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static mode_t mode_of(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}
int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return fails() ? -1 : REAL(open)(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return fails() ? -1 : REAL(open)(path, flags, mode);
}
ssize_t write(int file, const void *bytes, size_t count) { return fails() ? -1 : REAL(write)(file, bytes, count); }
ssize_t read(int file, void *bytes, size_t count) { return fails() ? -1 : REAL(read)(file, bytes, count); }
size_t fread(void *bytes, size_t size, size_t count, FILE *file) {
  if (!fails()) return REAL(fread)(bytes, size, count, file);
  file->_flags |= 0x20; /* _IO_ERR_SEEN: ferror() is then true */
  return 0;
}
FILE *fdopen(int file, const char *mode) { return fails() ? NULL : REAL(fdopen)(file, mode); }
int fsync(int file) { return fails() ? -1 : REAL(fsync)(file); }
int ftruncate(int file, off_t size) { return fails() ? -1 : REAL(ftruncate)(file, size); }
int fchmod(int file, mode_t mode) { return fails() ? -1 : REAL(fchmod)(file, mode); }
int flock(int file, int operation);
int flock(int file, int operation) { return fails() ? -1 : REAL(flock)(file, operation); }
int close(int file) {
  const int failing = fails(), result = REAL(close)(file); /* closed in any case, as by the system */
  if (!failing) return result;
  errno = number;
  return -1;
}
int stat(const char *path, struct stat *info) { return fails() ? -1 : REAL(stat)(path, info); }
int fstat(int file, struct stat *info) { return fails() ? -1 : REAL(fstat)(file, info); }
int lstat(const char *path, struct stat *info) { return fails() ? -1 : REAL(lstat)(path, info); }
int access(const char *path, int mode) { return fails() ? -1 : REAL(access)(path, mode); }
int mkdir(const char *path, mode_t mode) { return fails() ? -1 : REAL(mkdir)(path, mode); }
int rename(const char *from, const char *to) { return fails() ? -1 : REAL(rename)(from, to); }
int unlink(const char *path) { return fails() ? -1 : REAL(unlink)(path); }
int remove(const char *path) { return fails() ? -1 : REAL(remove)(path); }
int linkat(int a, const char *from, int b, const char *to, int flags) {
  return fails() ? -1 : REAL(linkat)(a, from, b, to, flags);
}
char *realpath(const char *path, char *resolved) { return fails() ? NULL : REAL(realpath)(path, resolved); }
DIR *opendir(const char *path) { return fails() ? NULL : REAL(opendir)(path); }
struct dirent *readdir(DIR *folder) { return fails() ? NULL : REAL(readdir)(folder); }
