#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "layers/network/network.hpp"

namespace quantrain {

/// Numbers the values that steps read: inputs, then tensors, then the results of steps.
/// Throws: GraphError as the constructor of Network.
std::unordered_map<std::string, size_t> check_parts(const NetworkParts& parts);

}  // namespace quantrain
