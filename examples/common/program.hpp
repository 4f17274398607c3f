#pragma once

#include <functional>
#include <string>

#include "examples/common/flags.hpp"
#include "examples/common/task.hpp"
#include "layers/sequential.hpp"

namespace quantrain::examples {

struct Program {
  std::string name;  ///< "mnist_mlp"
  CommandLine line;
  std::function<Task(const Flags& flags)> task;         ///< reads or makes the data
  std::function<Sequential(const Task& task)> network;  ///< makes it, with new weights
};

/// What every example does with its network: trains it in float, quantizes a copy after training
/// (PTQ) and another one while training on (QAT), converts that to integers, proves that both
/// compute the same, times them, and prints a table. Returns the exit status; an error is one line
/// on standard error.
int run(int argc, const char* const* argv, const Program& program);

}  // namespace quantrain::examples
