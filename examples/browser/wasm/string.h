/* The string functions that exported C code calls. With -mbulk-memory they become instructions. */
#pragma once
#include <stddef.h>

static inline void *memcpy(void *to, const void *from, size_t n) {
  return __builtin_memcpy(to, from, n);
}
static inline void *memset(void *to, int byte, size_t n) { return __builtin_memset(to, byte, n); }
