#pragma once

#include <functional>
#include <string>

#include "examples/common/flags.hpp"
#include "layers/sequential.hpp"

namespace quantrain::examples {

struct Program {
  std::string name;         ///< "mnist_mlp"
  std::string description;  ///< first line of --help
  Flags defaults;
};

/// What every example does with its network: trains it in float, quantizes a copy after training
/// (PTQ) and another one while training on (QAT), converts that to integers, proves that both
/// compute the same, times them, and prints a table. `network` makes the network, with new weights.
/// Returns the exit status; an error is one line on standard error.
int run(int argc,
        const char* const* argv,
        const Program& program,
        const std::function<Sequential()>& network);

}  // namespace quantrain::examples
