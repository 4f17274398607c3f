#include "framework/integer/dead_channels.hpp"

#include <algorithm>
#include <limits>

#include "framework/integer/code_ranges.hpp"
#include "framework/integer/program_file.hpp"

namespace quantrain::integer {
namespace {

/// Finds the channels to remove. First marks all channels as dead, except those of inputs, outputs
/// and accumulators. Then unmarks those that a step needs, until nothing changes. A product needs
/// every input channel that is not constant. It needs constant ones, too, if padding makes their
/// contribution vary, or if its bias has no room for them. A step that works channel by channel
/// needs the channels that its output keeps. Each value keeps at least one channel.
class Dead {
 public:
  Dead(const Program& program, const CodeRanges& ranges) : ranges_(ranges) {
    for (size_t id = 0; id < program.values.size(); ++id) {
      std::vector<bool>& dead = of_.emplace_back();
      dead.assign(ranges.at(static_cast<int>(id)).size(), true);
      const auto size = static_cast<int64_t>(dead.size());
      const Shape& shape = program.values[id].shape;
      // The channels must be the last axis, or must repeat along that axis.
      if (shape.rank() == 0 || shape.back() % size != 0 || !program.values[id].is_codes())
        keep_all(static_cast<int>(id));
    }
    for (const int id : program.inputs) keep_all(id);
    for (const int id : program.outputs) keep_all(id);
    do {
      do {
        changed_ = false;
        // In reverse order, because what a step needs depends on the steps that read its output.
        for (auto step = program.steps.rbegin(); step != program.steps.rend(); ++step)
          std::visit([&](const auto& op) { restrict(op, *step); }, step->operation);
      } while (changed_);
      for (size_t id = 0; id < of_.size(); ++id) keep_one(static_cast<int>(id));
    } while (changed_);
  }

  const std::vector<bool>& at(int id) const { return of_[static_cast<size_t>(id)]; }
  bool any(int id) const { return std::count(at(id).begin(), at(id).end(), true) > 0; }
  int64_t kept(int id) const { return std::count(at(id).begin(), at(id).end(), false); }
  /// How many of `elements` elements remain after the dead channels are removed. `elements` must be
  /// a multiple of the number of the value's channels.
  int64_t shrunk(int id, int64_t elements) const { return without_dead(at(id), elements); }

 private:
  void keep(int id, size_t channel) {
    std::vector<bool>& dead = of_[static_cast<size_t>(id)];
    if (!dead[channel]) return;
    dead[channel] = false;
    changed_ = true;
  }
  void keep_all(int id) {
    for (size_t c = 0; c < at(id).size(); ++c) keep(id, c);
  }
  void keep_one(int id) {
    if (kept(id) == 0) keep(id, 0);
  }

  /// For each channel c: keeps c in both values unless c is dead in both. If the values have
  /// different numbers of channels, keeps all of them.
  void link(int a, int b) {
    if (at(a).size() != at(b).size()) {
      keep_all(a);
      keep_all(b);
      return;
    }
    for (size_t c = 0; c < at(a).size(); ++c) {
      if (at(a)[c] == at(b)[c]) continue;
      keep(a, c);
      keep(b, c);
    }
  }

  void restrict(const Gather& op, const Step& step) {
    const int x = step.inputs[0];
    if (op.run % static_cast<int64_t>(at(x).size()) == 0) return link(x, step.output);
    keep_all(x);
    keep_all(step.output);
  }

  void restrict(const QuantizedLinear& op, const Step& step) {
    restrict_input(op.product, op.outputs, op.inputs, false, step);
  }

  void restrict(const QuantizedConv2d& op, const Step& step) {
    const kernels::Conv2dShape& s = op.shape;
    if (s.groups == 1) return restrict_input(op.product, s.o, s.c, has_padding(s), step);
    if (is_depthwise(s) && static_cast<int64_t>(at(step.inputs[0]).size()) == s.c)
      return link(step.inputs[0], step.output);
    keep_all(step.inputs[0]);
    keep_all(step.output);
  }

  void restrict_input(const QuantizedProduct& product,
                      int64_t outputs,
                      int64_t row,
                      bool padded,
                      const Step& step) {
    const int x = step.inputs[0];
    const auto channels = static_cast<int64_t>(at(x).size());
    if (row % channels != 0) return keep_all(x);
    for (size_t c = 0; c < at(x).size(); ++c) {
      const Interval& codes = ranges_.at(x)[c];
      if (!codes.constant() || (padded && codes.lo != product.zero_x)) keep(x, c);
    }
    if (any(x) && !bias_fits(product, outputs, x)) keep_all(x);
  }

  /// Whether no accumulator can overflow after the constants are added to the bias.
  bool bias_fits(const QuantizedProduct& p, int64_t outputs, int x) const {
    const int64_t length = p.weight.size() / outputs;
    const SharedArray<int8_t> weight = p.weight.codes();
    const std::vector<bool>& dead = at(x);
    for (int64_t o = 0; o < outputs; ++o) {
      int64_t bias = p.bias.empty() ? 0 : p.bias[o];
      std::vector<int8_t> left;
      for (int64_t k = 0; k < length; ++k) {
        const auto c = static_cast<size_t>(k % static_cast<int64_t>(dead.size()));
        const int8_t w = weight[o * length + k];
        if (dead[c]) {
          bias += w * (ranges_.at(x)[c].lo - p.zero_x);
        } else {
          left.push_back(w);
        }
      }
      if (std::abs(bias) > std::numeric_limits<int32_t>::max()) return false;
      const int64_t bound = accumulator_bound(
          static_cast<int64_t>(left.size()), left.data(), static_cast<int32_t>(bias), p.zero_x);
      if (bound >= kAccumulatorLimit) return false;
    }
    return true;
  }

  template <class Op>
  void restrict(const Op&, const Step& step) {
    if constexpr (Op::kChannels == ChannelUse::kSame) {
      link_all(step);
    } else {
      static_assert(Op::kChannels == ChannelUse::kAll, "kOther needs its own restrict()");
      for (const int x : step.inputs) keep_all(x);
      keep_all(step.output);
    }
  }
  // If any operand keeps a channel, the first loop keeps it in the output, and the second loop
  // keeps it in all operands.
  void link_all(const Step& step) {
    for (const int x : step.inputs) link(x, step.output);
    for (const int x : step.inputs) link(x, step.output);
  }
  void restrict(const QuantizedConcat& op, const Step& step) {
    size_t first = 0;
    for (size_t i = 0; i < op.parts.size(); ++i) {
      const int x = step.inputs[i];
      const size_t channels = at(x).size();
      const auto run = static_cast<size_t>(op.parts[i].run);
      if (run % channels != 0) keep_all(x);
      for (size_t k = 0; k < run; ++k) {
        const bool both = run % channels == 0 && at(x)[k % channels] && at(step.output)[first + k];
        if (both) continue;
        if (run % channels == 0) keep(x, k % channels);
        keep(step.output, first + k);
      }
      first += run;
    }
  }

  const CodeRanges& ranges_;
  std::vector<std::vector<bool>> of_;
  bool changed_ = false;
};

/// Rewrites the operations without the dead channels.
class Rewriter {
 public:
  Rewriter(const CodeRanges& ranges, const Dead& dead) : ranges_(ranges), dead_(dead) {}

  Operation operator()(const Step& step) const {
    const bool changes =
        dead_.any(step.output) ||
        std::any_of(step.inputs.begin(), step.inputs.end(), [&](int id) { return dead_.any(id); });
    if (!changes) return step.operation;
    return std::visit(
        [&](auto op) -> Operation {
          if constexpr (decltype(op)::kChannels == ChannelUse::kOther) {
            return rewritten(std::move(op), step);
          } else {
            if constexpr (decltype(op)::kChannels == ChannelUse::kSame)
              op.remove_channels(dead_.at(step.output));
            return op;
          }
        },
        step.operation);
  }

 private:
  Gather rewritten(Gather op, const Step& step) const {
    op.run = dead_.shrunk(step.output, op.run);
    return op;
  }

  QuantizedLinear rewritten(QuantizedLinear op, const Step& step) const {
    op.product = rewritten(op.product, op.outputs, step);
    op.inputs = dead_.shrunk(step.inputs[0], op.inputs);
    op.outputs = dead_.shrunk(step.output, op.outputs);
    return op;
  }

  QuantizedConv2d rewritten(QuantizedConv2d op, const Step& step) const {
    kernels::Conv2dShape& s = op.shape;
    if (is_depthwise(s)) {
      // Each output channel reads one input channel, and both are removed together. So nothing is
      // added to a bias.
      op.product = rewritten(op.product, s.o, step, false);
      s.c = s.o = s.groups = dead_.shrunk(step.output, s.o);
      return op;
    }
    op.product = rewritten(op.product, s.o, step, s.groups == 1);
    s.c = dead_.shrunk(step.inputs[0], s.c);
    s.o = dead_.shrunk(step.output, s.o);
    return op;
  }

  /// folds: whether the constants of dead input channels are added to the biases.
  QuantizedProduct rewritten(const QuantizedProduct& p,
                             int64_t outputs,
                             const Step& step,
                             bool folds = true) const {
    const std::vector<bool>& dead_x = dead_.at(step.inputs[0]);
    const std::vector<bool>& dead_y = dead_.at(step.output);
    const Channels& x = ranges_.at(step.inputs[0]);
    const bool fold = folds && dead_.any(step.inputs[0]);
    const int64_t length = p.weight.size() / outputs;
    const SharedArray<int8_t> from = p.weight.codes();
    std::vector<int8_t> weight;
    std::vector<int32_t> bias;
    QuantizedProduct result = p;
    std::vector<int32_t> m0;
    std::vector<int32_t> shift;
    for (int64_t o = 0; o < outputs; ++o) {
      if (p.output && dead_y[static_cast<size_t>(o)]) continue;
      int64_t sum = p.bias.empty() ? 0 : p.bias[o];
      for (int64_t k = 0; k < length; ++k) {
        const auto c = static_cast<size_t>(k % static_cast<int64_t>(dead_x.size()));
        const int8_t w = from[o * length + k];
        if (fold && dead_x[c]) {
          sum += w * (x[c].lo - p.zero_x);
        } else {
          weight.push_back(w);
        }
      }
      bias.push_back(static_cast<int32_t>(sum));
      if (!p.output) continue;
      m0.push_back(p.output->m0[o]);
      shift.push_back(p.output->shift[o]);
    }
    if (result.output) result.output = Requantization{std::move(m0), std::move(shift), p.output->y};
    const bool plain =
        p.bias.empty() && std::all_of(bias.begin(), bias.end(), [](int32_t b) { return b == 0; });
    result.weight = {std::move(weight), p.weight.bits()};
    result.bias = plain ? SharedArray<int32_t>() : SharedArray<int32_t>(std::move(bias));
    return result;
  }

  QuantizedConcat rewritten(QuantizedConcat op, const Step& step) const {
    for (size_t i = 0; i < op.parts.size(); ++i)
      op.parts[i].run = dead_.shrunk(step.inputs[i], op.parts[i].run);
    return op;
  }

  const CodeRanges& ranges_;
  const Dead& dead_;
};

}  // namespace

Program remove_dead_channels(const Program& program, std::optional<int64_t> limit) {
  validate(program);
  const CodeRanges ranges(program, limit.value_or(memory_limit(size_bytes(program))));
  const Dead dead(program, ranges);
  const Rewriter rewrite(ranges, dead);
  Program result = program;
  for (size_t id = 0; id < result.values.size(); ++id) {
    Value& value = result.values[id];
    if (!dead.any(static_cast<int>(id))) continue;
    std::vector<int64_t> extents(value.shape.begin(), value.shape.end());
    extents.back() = dead.shrunk(static_cast<int>(id), extents.back());
    value.shape = Shape(extents);
  }
  for (Step& step : result.steps) {
    step.operation = rewrite(step);
    std::vector<float>& scale = step.origin.weight_scale;
    if (scale.size() <= 1 || !dead.any(step.output)) continue;
    const std::vector<bool>& gone = dead.at(step.output);
    size_t kept = 0;
    for (size_t c = 0; c < scale.size(); ++c)
      if (!gone[c % gone.size()]) scale[kept++] = scale[c];
    scale.resize(kept);
  }
  validate(result);
  return result;
}

}  // namespace quantrain::integer
