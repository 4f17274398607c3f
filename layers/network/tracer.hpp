#pragma once

#include <map>
#include <string>
#include <vector>

#include "layers/network/network.hpp"
#include "layers/network/recording.hpp"

namespace quantrain {

struct TracedParts {
  NetworkParts parts;
  /// For the path of a module that ran something: the step whose result is the module's.
  std::map<std::string, std::string> new_paths;
  std::vector<Module*> sources;  ///< the module that each step stands for, or that ran it
};

/// Names the steps, gives each a layer, and compares two passes: one over the examples in
/// evaluation mode, and one over twice as many samples in training mode.
/// Throws: GraphError as trace().
TracedParts trace_parts(Module& net,
                        std::vector<NetworkInput> inputs,
                        const RecordedCalls& evaluation,
                        const RecordedCalls& training);

}  // namespace quantrain
