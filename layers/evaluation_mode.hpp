#pragma once

#include <utility>
#include <vector>

#include "layers/module.hpp"

namespace quantrain {

/// While an EvaluationMode exists, a module and all modules below it, including those in slots, are
/// in evaluation mode. The destructor gives each module its previous mode. The module must outlive
/// this object and keep its slots.
class EvaluationMode {
 public:
  [[nodiscard]] explicit EvaluationMode(Module& module) {
    module.append_modes(0, modes_);
    module.eval();
  }
  // Restores parents before children, because train() of a parent also sets the mode of its slots
  // and children.
  ~EvaluationMode() {
    for (const auto& [module, training] : modes_) module->train(training);
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  std::vector<std::pair<Module*, bool>> modes_;
};

}  // namespace quantrain
