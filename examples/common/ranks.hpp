#pragma once

#include <memory>

#include "framework/distributed/communicator.hpp"

namespace quantrain::examples {

/// The ranks of MPI, if mpirun or another launcher has started this process. Null if none has, or
/// if the examples were built without MPI.
/// Throws: DistributedError if a launcher has started several processes, and the examples were built
/// without MPI, or with another one.
std::unique_ptr<Communicator> launched_ranks();

}  // namespace quantrain::examples
