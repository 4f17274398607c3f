#pragma once

#include <cstdint>
#include <span>

namespace quantrain::integer {

/// What is made once of an operation for the chosen instruction set, and runs it: run(n, inputs,
/// output) of n samples, const and safe to call from several threads. The operation must outlive
/// it, and must be valid. Specialised beside each operation.
template <class Operation>
class Prepared;
template <class Operation>
Prepared(const Operation&) -> Prepared<Operation>;

/// Inputs as codes, one after the other for each sample.
using Inputs = std::span<const uint8_t* const>;

}  // namespace quantrain::integer
