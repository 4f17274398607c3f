#pragma once

#include "framework/core/scope_stack.hpp"
#include "layers/module.hpp"

namespace quantrain {

/// While an EvaluationMode exists, a module and all modules below it, including those in slots, are
/// in evaluation mode. The destructor gives each module its previous mode, or, if an EvaluationMode
/// that began later still holds the module, leaves that to it. The module must outlive this object
/// and keep its slots.
class EvaluationMode {
 public:
  [[nodiscard]] explicit EvaluationMode(Module& module);
  ~EvaluationMode();
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  ScopeStack<Module*, bool, EvaluationMode> modes_;
};

}  // namespace quantrain
