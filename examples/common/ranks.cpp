#include "examples/common/ranks.hpp"

#if QUANTRAIN_MPI
#include "framework/distributed/mpi/mpi.hpp"
#endif

namespace quantrain::examples {

std::unique_ptr<Communicator> launched_ranks() {
#if QUANTRAIN_MPI
  if (MpiRanks::is_launched()) return std::make_unique<MpiRanks>();
#endif
  return nullptr;
}

}  // namespace quantrain::examples
