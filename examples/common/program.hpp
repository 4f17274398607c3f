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
  std::function<Sequential(const Task& task)> network;  ///< makes the network, with new weights
};

/// Runs an example: trains the network in float, quantizes one copy after training (PTQ) and
/// another during further training (QAT), converts the QAT copy to an integer model, compares the
/// model's integers with those of the QAT copy, measures times, and prints a table. Returns the
/// exit status. An error is one line on standard error.
int run(int argc, const char* const* argv, const Program& program);

}  // namespace quantrain::examples
