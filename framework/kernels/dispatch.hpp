#pragma once

#include "framework/core/cpu.hpp"
#include "framework/kernels/table.hpp"

namespace quantrain::kernels {

/// Kernels of one instruction set. Throws: DataError if it is not built.
const KernelTable& table(Isa isa);
/// Kernels of chosen_isa().
const KernelTable& table();

}  // namespace quantrain::kernels
