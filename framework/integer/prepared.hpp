#pragma once

#include <cstdint>
#include <span>

namespace quantrain::integer {

/// An operation, prepared once for the chosen instruction set. run(n, inputs, output) runs n
/// samples. It is const and safe to call from several threads. The operation must be valid and must
/// outlive this object. The header of each operation defines its specialisation.
template <class Operation>
class Prepared;
template <class Operation>
Prepared(const Operation&) -> Prepared<Operation>;

/// One pointer for each input. It points to the input's codes, sample after sample.
using Inputs = std::span<const uint8_t* const>;

}  // namespace quantrain::integer
