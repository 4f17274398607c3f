#pragma once

#include <cstdint>

// Parameter structs of kernels: plain data, seen by files with -m flags too, so nothing of the standard library's code.
namespace quantrain::kernels {}  // namespace quantrain::kernels
