#pragma once

#include <cstdint>

namespace quantrain::kernels {

/// Adds up `parts` vectors of n floats. The vectors lie one after the other. They are added in a
/// binary tree whose shape depends on `parts` alone. The sum replaces the first vector; the others
/// are destroyed.
void add_up(int64_t parts, int64_t n, float* partial);
/// The same for elements [begin, end) of the vectors, without other threads.
void add_up_part(int64_t parts, int64_t n, float* partial, int64_t begin, int64_t end);

}  // namespace quantrain::kernels
