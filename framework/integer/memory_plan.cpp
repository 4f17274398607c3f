#include "framework/integer/memory_plan.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/integer/sample_tasks.hpp"
#include "framework/integer/sizes.hpp"

namespace quantrain::integer {
namespace {

struct Block {
  int64_t begin, end;
  int value;
};

}  // namespace

int64_t padded_bytes(const Value& value) {
  const int64_t bytes = value.shape.elements() * (value.is_codes() ? 1 : 4);
  return (bytes + 63) / 64 * 64;
}

// First fit, in the order of the steps.
MemoryPlan plan_memory(const Program& program) {
  const size_t count = program.values.size();
  MemoryPlan plan{.roots = std::vector<int>(count), .offsets = std::vector<int64_t>(count, 0)};
  const auto root = [&](int id) -> int& { return plan.roots[static_cast<size_t>(id)]; };
  std::vector<size_t> last_use(count, 0);
  const auto last = [&](int id) -> size_t& { return last_use[static_cast<size_t>(id)]; };

  for (const int id : program.inputs) root(id) = id;
  for (size_t step = 0; step < program.steps.size(); ++step) {
    const Step& s = program.steps[step];
    const bool view = std::holds_alternative<View>(s.operation);
    root(s.output) = view ? root(s.inputs[0]) : s.output;
    last(root(s.output)) = step;
    for (const int id : s.inputs) last(root(id)) = step;
  }
  for (const int id : program.outputs) last(root(id)) = program.steps.size();

  std::vector<Block> live;  // sorted by address
  const auto place = [&](int id) {
    const int64_t bytes = padded_bytes(program.value(id));
    int64_t begin = 0;
    auto next = live.begin();
    while (next != live.end() && next->begin - begin < bytes) begin = (next++)->end;
    live.insert(next, {begin, begin + bytes, id});
    plan.offsets[static_cast<size_t>(id)] = begin;
    plan.sample_bytes = std::max(plan.sample_bytes, begin + bytes);
  };
  // Gives the output the place of an input of the same size that no later step reads.
  const auto take_over = [&](const Step& s, size_t step) {
    if (!runs_in_place(s.operation)) return false;
    for (const int id : s.inputs) {
      const int from = root(id);
      const int64_t size = program.value(from).shape.elements();
      if (last(from) != step || size != program.value(s.output).shape.elements()) continue;
      const auto block =
          std::find_if(live.begin(), live.end(), [&](const Block& b) { return b.value == from; });
      if (block == live.end()) continue;
      block->value = s.output;
      plan.offsets[static_cast<size_t>(s.output)] = block->begin;
      return true;
    }
    return false;
  };
  for (const int id : program.inputs) place(id);
  for (size_t step = 0; step < program.steps.size(); ++step) {
    const Step& s = program.steps[step];
    if (root(s.output) != s.output) {
      plan.offsets[static_cast<size_t>(s.output)] =
          plan.offsets[static_cast<size_t>(root(s.output))];
    } else if (!take_over(s, step)) {
      place(s.output);
    }
    std::erase_if(live, [&](const Block& block) { return last(block.value) <= step; });
  }
  return plan;
}

int64_t memory(const Program& program, int64_t n) {
  constexpr int64_t kMost = int64_t{1} << 62;
  if (n < 1) return 0;
  const int64_t sample = plan_memory(program).sample_bytes;
  // Beyond these limits, scratch_bytes() and the sum below could overflow.
  if (n > kMostElements || n > kMost / (sample + kMostElements)) return kMost;
  const auto most_scratch = [&](int64_t samples) {
    int64_t scratch = 0;
    for (const Step& step : program.steps) {
      std::optional<SerialLoops> alone;
      if (samples < least_samples_to_share(step.operation)) alone.emplace();
      scratch = std::max(scratch, scratch_bytes(step.operation, samples));
    }
    return scratch;
  };
  const int64_t tasks = sample_tasks(least_samples_per_task(program), n);
  if (tasks == 1) return n * sample + most_scratch(n);
  const int64_t workers = threads();
  const SerialLoops serial;  // scratch_bytes() then means one thread
  return n * sample + workers * most_scratch((n + tasks - 1) / tasks);
}

int64_t kept_bytes(const Program& program) {
  const auto text = [](const std::string& s) {
    return s.capacity() < sizeof(std::string) / 2 ? 0 : std::ssize(s) + 1;
  };
  const auto texts = [&](const std::map<std::string, std::string>& map) {
    constexpr int64_t kNode = 4 * sizeof(void*) + 2 * sizeof(std::string);
    int64_t bytes = 0;
    for (const auto& [key, value] : map) bytes += kNode + text(key) + text(value);
    return bytes;
  };
  int64_t bytes = texts(program.metadata);
  for (const Value& value : program.values) {
    bytes += int64_t{sizeof(Value)} + text(value.name) + 8 * std::ssize(value.scale) +
             8 * value.features.size();
    if (value.params) bytes += 4 * std::ssize(value.params->scale);
  }
  std::set<Constant::Id> known;
  std::set<PanelKey> panels;
  for (const Step& step : program.steps) {
    bytes += int64_t{sizeof(Step)} + int64_t{sizeof(PreparedOperation)} + texts(step.origin.about) +
             4 * std::ssize(step.origin.weight_scale) + 4 * std::ssize(step.inputs);
    const QuantizedProduct* const p = product(step.operation);
    if (p == nullptr) {
      bytes += size_bytes(step.operation) + prepared_bytes(step.operation);
      continue;
    }
    const kernels::PackedWeightsS8 w = p->planned(weights_shape(step.operation));
    bytes += kernels::ProductParams::bytes(w, p->output.has_value());
    for (const SharedArray<int32_t>* const own : own_arrays(*p, w)) {
      if (known.insert({own->data(), 32, own->size()}).second) bytes += 4 * own->size();
    }
    if (panels.insert(panel_key(step.operation)).second) bytes += w.bytes();
  }
  return bytes;
}

void check_memory(const Program& program, int64_t limit, std::string_view where) {
  const auto check = [&](const Value& value, int64_t bytes) {
    if (bytes <= limit) return;
    throw DataError(where,
                    "the model takes ",
                    bytes,
                    " bytes of memory up to layer \"",
                    value.name,
                    "\", the limit is ",
                    limit,
                    "; load it with a larger limit if you trust the file");
  };
  const MemoryPlan plan = plan_memory(program);
  const auto end = [&](int id) {
    return plan.offsets[static_cast<size_t>(id)] + padded_bytes(program.value(id));
  };
  int64_t places = 0;
  for (const int id : program.inputs) check(program.value(id), places = std::max(places, end(id)));
  int64_t prepared = 0;
  std::set<PanelKey> shared;
  for (const Step& step : program.steps) {
    places = std::max(places, end(step.output));
    int64_t scratch = scratch_bytes(step.operation, 1);
    if (const QuantizedProduct* const p = product(step.operation)) {
      // Steps share panels. While new ones are made, the weights are also plain bytes.
      const kernels::PackedWeightsS8 w = p->planned(weights_shape(step.operation));
      prepared += kernels::ProductParams::bytes(w, p->output.has_value());
      if (shared.insert(panel_key(step.operation)).second) prepared += w.bytes();
      scratch = std::max(scratch, p->weight.size());
    } else {
      prepared += prepared_bytes(step.operation);
    }
    check(program.value(step.output), places + prepared + scratch);
  }
}

}  // namespace quantrain::integer
