#pragma once

#include <vector>

#include "framework/autograd/named_state.hpp"
#include "framework/distributed/communicator.hpp"
#include "layers/training/epoch_report.hpp"

namespace quantrain {

/// Sets the state of all ranks to that of rank 0.
/// Throws: as Communicator::broadcast().
void share_state(Communicator& ranks, std::vector<NamedState> state);
/// Sets the metrics of all ranks to those of rank 0.
void share_metrics(Communicator& ranks, Metrics& metrics);

}  // namespace quantrain
