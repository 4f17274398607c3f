#pragma once

#include <vector>

#include "framework/autograd/named_state.hpp"
#include "framework/distributed/bytes.hpp"
#include "framework/distributed/communicator.hpp"
#include "layers/training/epoch_report.hpp"

namespace quantrain {

/// Appends the values of an entry, without its name and shape.
void append_values(Communicator::Bytes& to, const NamedState& entry);
/// Sets an entry of the same type and shape to what append_values() wrote.
/// Throws: DistributedError if there are too few bytes; DataError if an integer is outside of the
/// range of the entry.
void read_values(NamedState& entry, ByteReader& from);

/// Sets the state of all ranks to that of rank 0.
/// Throws: as Communicator::broadcast(); DistributedError if the number of bytes differs.
void share_state(Communicator& ranks, std::vector<NamedState> state);
/// Sets the metrics of all ranks to those of rank 0.
void share_metrics(Communicator& ranks, Metrics& metrics);

}  // namespace quantrain
