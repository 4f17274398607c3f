#include "examples/common/ranks.hpp"

#if QUANTRAIN_MPI
#include "framework/distributed/mpi/mpi.hpp"
#endif

namespace quantrain::examples {

std::unique_ptr<Communicator> launched_ranks() {
#if QUANTRAIN_MPI
  if (MpiRanks::is_launched()) return std::make_unique<MpiRanks>();
#else
  check_launcher(1, "but the examples were built without MPI: configure with QUANTRAIN_MPI=ON");
#endif
  return nullptr;
}

}  // namespace quantrain::examples
