#include "layers/evaluation_mode.hpp"

#include <utility>
#include <vector>

namespace quantrain {

EvaluationMode::EvaluationMode(Module& module) {
  std::vector<std::pair<Module*, bool>> modes;
  module.append_modes(0, modes);
  modes_.reserve(modes.size());
  for (const auto& [part, training] : modes) modes_.keep(part, training);
  module.eval();
}

EvaluationMode::~EvaluationMode() {
  modes_.end([](Module* module, bool training, bool* later) {
    if (later != nullptr) {
      *later = training;
    } else {
      module->set_own_mode(training);
    }
  });
}

}  // namespace quantrain
