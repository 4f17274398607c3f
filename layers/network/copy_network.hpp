#pragma once

#include "layers/network/network.hpp"

namespace quantrain {

/// An independent copy, as copy(net, make) makes it (layers/copy.hpp), but from the network alone.
/// Layers that share parameters share them in the copy, too.
/// Throws: GraphError naming a layer whose class is not registered.
Network copy(const Network& net);

}  // namespace quantrain
