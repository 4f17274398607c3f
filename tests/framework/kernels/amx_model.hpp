#pragma once

#include "framework/kernels/params.hpp"

namespace quantrain::test {

/// The kernel of AMX with functions in place of its instructions. Needs a CPU with AVX-512 VNNI.
/// Throws: std::logic_error if AMX would refuse an instruction, or the tiles are not released.
void model_of_dot_tiles(const kernels::DotU8S8& p);
/// The same with the instructions. Needs AMX. It takes every call that tiles can compute, also
/// those for which the kernel in the table prefers dot products of vectors.
void dot_tiles_of_amx(const kernels::DotU8S8& p);

}  // namespace quantrain::test
