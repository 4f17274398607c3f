#include "framework/integer/code_ranges.hpp"

#include "framework/core/error.hpp"

namespace quantrain::integer {
namespace {

/// w * (x - zero) for x in the interval.
Interval product_of(int64_t w, const Interval& x, int32_t zero) {
  const int64_t a = w * (x.lo - zero);
  const int64_t b = w * (x.hi - zero);
  return {std::min(a, b), std::max(a, b)};
}

/// The image of x under a function that never decreases.
template <class Function>
Interval through(const Interval& x, const Function& function) {
  return {function(x.lo), function(x.hi)};
}

Interval all_of(const Channels& channels) {
  Interval all = channels[0];
  for (const Interval& channel : channels) all = all.joined(channel);
  return all;
}

/// Repeats the intervals for `count` channels. If count is not a multiple of the number of
/// intervals, each channel gets the union of all intervals.
Channels over(const Channels& channels, int64_t count) {
  const auto size = static_cast<int64_t>(channels.size());
  if (size == count) return channels;
  Channels result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(count % size == 0 ? channels[static_cast<size_t>(i % size)]
                                       : all_of(channels));
  return result;
}

int32_t requantized(const QuantizedProduct& p, size_t o, int64_t acc) {
  const Requantization& r = *p.output;
  return requantize(
      static_cast<int32_t>(acc), Multiplier{r.m0[o], r.shift[o]}, r.y.zero_point, r.y.lo, r.y.hi);
}

/// Computes the possible codes of an operation's output from those of its inputs.
class Propagation {
 public:
  explicit Propagation(const std::vector<Channels>& of) : of_(of) {}

  Channels run(const Gather& op, const std::vector<int>& inputs) const {
    const Channels& x = at(inputs[0]);
    const auto channels = static_cast<int64_t>(x.size());
    const Gather::Axis& last = op.axes.back();
    Channels y;
    if (op.run % channels == 0) {
      y = x;  // whole pixels move, so channels stay the same
    } else if (last.extent * op.run == channels) {
      for (const int32_t index : last.index) {
        for (int64_t r = 0; r < op.run; ++r) {
          y.push_back(index < 0 ? Interval{op.fill, op.fill}
                                : x[static_cast<size_t>(index * op.run + r)]);
        }
      }
    } else {
      y = {all_of(x)};
    }
    if (!op.fills()) return y;
    for (Interval& channel : y) channel = channel.joined({op.fill, op.fill});
    return y;
  }

  Channels run(const QuantizedLinear& op, const std::vector<int>& inputs) const {
    const Channels x = over(at(inputs[0]), op.inputs);
    Channels y;
    for (int64_t o = 0; o < op.outputs; ++o) {
      Interval sum = start(op.product, o);
      for (int64_t i = 0; i < op.inputs; ++i) {
        sum = sum + product_of(op.product.weight[o * op.inputs + i],
                               x[static_cast<size_t>(i)],
                               op.product.zero_x);
      }
      y.push_back(finished(op.product, o, sum));
    }
    return y;
  }

  Channels run(const QuantizedConv2d& op, const std::vector<int>& inputs) const {
    const kernels::Conv2dShape& s = op.shape;
    const Channels x = over(at(inputs[0]), s.c);
    const bool padded = is_padded(s);
    Channels y;
    for (int64_t o = 0; o < s.o; ++o) {
      Interval sum = start(op.product, o);
      const int64_t first = o / s.group_o() * s.group_c();
      for (int64_t k = 0; k < s.reduction(); ++k) {
        const Interval term = product_of(op.product.weight[o * s.reduction() + k],
                                         x[static_cast<size_t>(first + k % s.group_c())],
                                         op.product.zero_x);
        sum = sum + (padded ? term.joined({0, 0}) : term);
      }
      y.push_back(finished(op.product, o, sum));
    }
    return y;
  }

  static Interval start(const QuantizedProduct& p, int64_t o) {
    const int64_t bias = p.bias.empty() ? 0 : p.bias[o];
    return {bias, bias};
  }

  static Interval finished(const QuantizedProduct& p, int64_t o, const Interval& sum) {
    if (!p.output) return {0, 255};  // accumulators: no step reads them, so any range is right
    return through(sum, [&](int64_t acc) { return requantized(p, static_cast<size_t>(o), acc); });
  }

  Channels run(const QuantizedMaxPool2d& op, const std::vector<int>& inputs) const {
    return over(at(inputs[0]), op.shape.c);
  }

  Channels run(const QuantizedAvgPool2d& op, const std::vector<int>& inputs) const {
    Channels y = over(at(inputs[0]), op.shape.c);
    for (Interval& channel : y) {
      const Interval x = channel;
      for (const kernels::MeanMultiplier& mean : op.means) {
        const Interval codes = through(x, [&](int64_t q) {
          const int64_t sum = mean.count * (q - op.zero_x);
          return requantize(
              static_cast<int32_t>(sum), mean.multiplier, op.y.zero_point, op.y.lo, op.y.hi);
        });
        channel = &mean == &op.means[0] ? codes : channel.joined(codes);
      }
    }
    return y;
  }

  Channels run(const QuantizedLookup& op, const std::vector<int>& inputs) const {
    const Channels& x = at(inputs[0]);
    Channels y = op.channels() == 1 ? x : over(x, op.channels());
    for (size_t c = 0; c < y.size(); ++c) {
      const Interval codes = y[c];
      y[c] = {255, 0};
      for (int64_t q = codes.lo; q <= codes.hi; ++q) {
        const int64_t code = op.at(static_cast<int64_t>(c), q);
        y[c] = y[c].joined({code, code});
      }
    }
    return y;
  }

  Channels run(const QuantizedAdd& op, const std::vector<int>& inputs) const {
    size_t size = 0;
    for (const int id : inputs) size = std::max(size, at(id).size());
    // The sums of the lowest and of the highest codes, before the shift.
    // docs/quantization.md (11)
    Channels sums(size, Interval{0, 0});
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Channels x = over(at(inputs[i]), static_cast<int64_t>(size));
      const integer::QuantizedAdd::Operand& operand = op.operands[i];
      for (size_t c = 0; c < size; ++c) {
        sums[c].lo += (x[c].lo - operand.zero_x) * operand.m;
        sums[c].hi += (x[c].hi - operand.zero_x) * operand.m;
      }
    }
    const auto code = [&](int64_t sum) {
      return std::clamp<int64_t>(rounding_shift(sum, op.shift) + op.y.zero_point, op.y.lo, op.y.hi);
    };
    Channels y;
    for (const Interval& sum : sums) y.push_back({code(sum.lo), code(sum.hi)});
    return y;
  }

  Channels run(const QuantizedMul& op, const std::vector<int>& inputs) const {
    // b has one factor for each channel of a, the same for every row. So if one operand has fewer
    // intervals, they are repeated.
    const size_t size = std::max(at(inputs[0]).size(), at(inputs[1]).size());
    const Channels a = over(at(inputs[0]), static_cast<int64_t>(size));
    const Channels b = over(at(inputs[1]), static_cast<int64_t>(size));
    Channels y;
    for (size_t c = 0; c < size; ++c) {
      const Interval low = product_of(b[c].lo - op.zero_b, a[c], op.zero_a);
      const Interval high = product_of(b[c].hi - op.zero_b, a[c], op.zero_a);
      y.push_back(through(low.joined(high), [&](int64_t acc) {
        return requantize(
            static_cast<int32_t>(acc), op.multiplier, op.y.zero_point, op.y.lo, op.y.hi);
      }));
    }
    return y;
  }

  Channels run(const QuantizedConcat& op, const std::vector<int>& inputs) const {
    Channels y;
    for (size_t i = 0; i < op.parts.size(); ++i) {
      const auto& part = op.parts[i];
      for (const Interval& x : over(at(inputs[i]), part.run)) {
        y.push_back(through(x, [&](int64_t q) {
          return requantize(static_cast<int32_t>(q) - part.zero_x,
                            part.multiplier,
                            op.y.zero_point,
                            op.y.lo,
                            op.y.hi);
        }));
      }
    }
    return y;
  }

  Channels run(const QuantizedSoftmax& op, const std::vector<int>&) const {
    return Channels(static_cast<size_t>(op.classes), Interval{op.y.lo, op.y.hi});
  }

  Channels run(const View&, const std::vector<int>& inputs) const { return at(inputs[0]); }

 private:
  const Channels& at(int id) const { return of_[static_cast<size_t>(id)]; }

  const std::vector<Channels>& of_;
};

}  // namespace

CodeRanges::CodeRanges(const Program& program) : of_(program.values.size()) {
  for (const int id : program.inputs) {
    const Shape& shape = program.value(id).shape;
    // An input may hold any byte.
    of_[static_cast<size_t>(id)] =
        Channels(static_cast<size_t>(shape.rank() == 0 ? 1 : shape.back()));
  }
  const Propagation propagation(of_);
  for (const Step& step : program.steps) {
    of_[static_cast<size_t>(step.output)] = std::visit(
        [&](const auto& op) { return propagation.run(op, step.inputs); }, step.operation);
  }
}

const Channels& CodeRanges::at(int id) const& {
  if (id < 0 || id >= std::ssize(of_))
    throw GraphError("code_ranges", "value ", id, " does not exist");
  return of_[static_cast<size_t>(id)];
}

}  // namespace quantrain::integer
