#include "framework/integer/code_ranges.hpp"

#include "framework/core/error.hpp"

namespace quantrain::integer {

CodeRanges::CodeRanges(const Program& program) : of_(program.values.size()) {
  for (const int id : program.inputs) {
    const Shape& shape = program.value(id).shape;
    // An input may hold any byte.
    of_[static_cast<size_t>(id)] =
        Channels(static_cast<size_t>(shape.rank() == 0 ? 1 : shape.back()));
  }
  for (const Step& step : program.steps) {
    std::vector<const Channels*> inputs;
    for (const int id : step.inputs) inputs.push_back(&of_[static_cast<size_t>(id)]);
    of_[static_cast<size_t>(step.output)] = output_channels(step.operation, inputs);
  }
}

const Channels& CodeRanges::at(int id) const& {
  if (id < 0 || id >= std::ssize(of_))
    throw GraphError("code_ranges", "value ", id, " does not exist");
  return of_[static_cast<size_t>(id)];
}

}  // namespace quantrain::integer
