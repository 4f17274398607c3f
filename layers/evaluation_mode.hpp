#pragma once

#include <utility>
#include <vector>

#include "layers/module.hpp"

namespace quantrain {

/// While it lives, a module and all modules below it are in evaluation mode. Its destructor
/// restores the mode of each.
class EvaluationMode {
 public:
  explicit EvaluationMode(Module& module) {
    for (const NamedModule& entry : module.named_modules()) {
      modes_.emplace_back(entry.module, entry.module->training());
    }
    module.eval();
  }
  // Parents come first: train() of a parent also sets its children, whose own modes are restored
  // later.
  ~EvaluationMode() {
    for (const auto& [module, training] : modes_) module->train(training);
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  std::vector<std::pair<Module*, bool>> modes_;
};

}  // namespace quantrain
