#pragma once

#include <memory>
#include <string>

#include "layers/network/recording.hpp"

namespace quantrain {

/// The layer that computes a recorded operation. Attributes alone do not always say what an
/// operation does for a batch of another size, so the same operation is also given as a pass over
/// twice as many samples recorded it.
/// place: the layer or network that ran it, for messages.
/// Throws: GraphError naming the place and the operation if no layer and no registered operation
/// computes it, or if it works on single samples of the batch.
std::shared_ptr<Module> operation_layer(const Call& call,
                                        const Call& doubled,
                                        const std::string& place);

}  // namespace quantrain
