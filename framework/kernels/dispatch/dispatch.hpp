#pragma once

#include "framework/core/cpu.hpp"
#include "framework/kernels/dispatch/table.hpp"

namespace quantrain::kernels {

/// Float kernels of one instruction set. A set that adds only integer instructions has the float
/// kernels of the set that it extends.
/// Throws: DataError if the library was built without this set.
const FloatTable& float_table(Isa isa);
/// Float kernels of chosen_isa().
const FloatTable& float_table();

/// Integer kernels of one instruction set.
/// Throws: DataError if the library was built without this set.
const IntegerTable& integer_table(Isa isa);
/// Integer kernels of chosen_isa().
const IntegerTable& integer_table();

}  // namespace quantrain::kernels
