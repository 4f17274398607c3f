#pragma once

#include <cstdint>

namespace quantrain::kernels {

/// Adds up `parts` vectors of n floats. The vectors lie one after the other. They are added in a
/// binary tree whose shape depends on `parts` alone. The sum replaces the first vector; the others
/// are destroyed.
void add_up(int64_t parts, int64_t n, float* partial);

}  // namespace quantrain::kernels
