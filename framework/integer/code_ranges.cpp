#include "framework/integer/code_ranges.hpp"

#include "framework/core/error.hpp"

namespace quantrain::integer {

CodeRanges::CodeRanges(const Program& program, int64_t memory_limit) : of_(program.values.size()) {
  int64_t left = memory_limit / static_cast<int64_t>(sizeof(Interval));
  // Before a value's intervals are made, they count as one for each index of its last axis.
  const auto check = [&](int id, int64_t channels) {
    if (channels <= left) return;
    throw DataError(program.value(id).name,
                    "the ranges of codes up to this layer take more than ",
                    memory_limit,
                    " bytes of memory; allow more if you trust the file");
  };
  const auto last_axis = [&](int id) {
    const Shape& shape = program.value(id).shape;
    return shape.rank() == 0 ? 1 : shape.back();
  };
  for (const int id : program.inputs) {
    check(id, last_axis(id));
    left -= last_axis(id);
    of_[static_cast<size_t>(id)] = Channels(static_cast<size_t>(last_axis(id)));  // any byte
  }
  for (const Step& step : program.steps) {
    std::vector<const Channels*> inputs;
    for (const int id : step.inputs) inputs.push_back(&of_[static_cast<size_t>(id)]);
    check(step.output, last_axis(step.output));
    Channels& channels = of_[static_cast<size_t>(step.output)];
    channels = output_channels(step.operation, inputs);
    check(step.output, std::ssize(channels));
    left -= std::ssize(channels);
  }
}

const Channels& CodeRanges::at(int id) const& {
  if (id < 0 || id >= std::ssize(of_))
    throw GraphError("code_ranges", "value ", id, " does not exist");
  return of_[static_cast<size_t>(id)];
}

}  // namespace quantrain::integer
