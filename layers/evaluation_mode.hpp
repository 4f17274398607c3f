#pragma once

#include <utility>
#include <vector>

#include "layers/module.hpp"

namespace quantrain {

/// While an EvaluationMode exists, a module and all modules below it are in evaluation mode. The
/// destructor gives each module its previous mode.
class EvaluationMode {
 public:
  explicit EvaluationMode(Module& module) {
    for (const NamedModule& entry : module.named_modules()) {
      modes_.emplace_back(entry.module, entry.module->training());
    }
    module.eval();
  }
  // Restores parents before children, because train() of a parent also sets the mode of its
  // children.
  ~EvaluationMode() {
    for (const auto& [module, training] : modes_) module->train(training);
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  std::vector<std::pair<Module*, bool>> modes_;
};

}  // namespace quantrain
