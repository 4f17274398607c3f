#pragma once

#include <cstdint>

namespace quantrain::kernels {

/// Adds up `parts` vectors of n floats, one behind the other, in a binary tree whose form depends
/// on `parts` alone; the sum replaces the first. Destroys the others.
void add_up(int64_t parts, int64_t n, float* partial);

}  // namespace quantrain::kernels
