#pragma once

#include <memory>

#include "framework/distributed/communicator.hpp"

namespace quantrain::examples {

/// The ranks of MPI, if mpirun or another launcher has started this process. Null if none has, or
/// if the examples were built without MPI.
std::unique_ptr<Communicator> launched_ranks();

}  // namespace quantrain::examples
