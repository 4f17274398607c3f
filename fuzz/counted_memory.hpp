#pragma once

#include <cstdint>

// This program's malloc() and its kin count bytes, whoever calls them (glibc only).
namespace quantrain::fuzz {

int64_t bytes_in_use();
/// The most bytes in use since the last call of restart_peak().
int64_t peak_bytes();
void restart_peak();

}  // namespace quantrain::fuzz
