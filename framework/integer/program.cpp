#include "framework/integer/program.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "framework/core/error.hpp"
#include "framework/core/hash.hpp"
#include "framework/integer/program_constants.hpp"

namespace quantrain::integer {
namespace {

/// Checks a program step by step.
class Validator {
 public:
  explicit Validator(const Program& program)
      : p_(program), written_(program.values.size(), false) {}

  void run() {
    for (const Value& value : p_.values) check_value(value);
    check_features();
    if (p_.inputs.empty() || p_.outputs.empty())
      throw GraphError("program", p_.inputs.empty() ? "there is no input" : "there is no output");
    for (const int id : p_.inputs) {
      check_id("program", id);
      if (!p_.value(id).is_codes())
        throw GraphError(p_.value(id).name, "is an input, but holds accumulators");
      write(id);
    }
    for (const Step& step : p_.steps) check_step(step);
    for (const int id : p_.outputs) {
      check_id("program", id);
      if (!written_[static_cast<size_t>(id)])
        throw GraphError("program", "the output is value ", id, ", which no layer wrote");
    }
    for (size_t id = 0; id < written_.size(); ++id) {
      if (!written_[id]) throw GraphError(p_.values[id].name, "no layer wrote value ", id);
    }
  }

 private:
  static void check_value(const Value& value) {
    int64_t elements = 1;
    for (const int64_t extent : value.shape) check_size(value.name, {elements *= extent});
    if (value.params) {
      check_activation(*value.params, value.name);
      if (!value.scale.empty())
        throw QuantError(
            value.name,
            "has parameters of codes and scales of accumulators, expected only one of them");
      return;
    }
    const auto scales = static_cast<int64_t>(value.scale.size());
    if (scales == 0 || value.shape.elements() % scales != 0) {
      throw ShapeError(
          value.name, value.scale.size(), " scales do not fit accumulators of shape ", value.shape);
    }
    for (const double scale : value.scale) {
      if (!(scale > 0.0) || !std::isfinite(scale))
        throw QuantError(value.name,
                         "the scale of accumulators is ",
                         scale,
                         ", expected a positive finite number");
    }
  }

  // Only inputs have features, one for each index of the last axis.
  void check_features() const {
    for (size_t id = 0; id < p_.values.size(); ++id) {
      const Value& value = p_.values[id];
      if (value.features.empty()) continue;
      if (std::count(p_.inputs.begin(), p_.inputs.end(), static_cast<int>(id)) == 0)
        throw GraphError(value.name, "has features, but is not an input");
      validate(value.features, value.shape.rank() == 0 ? 1 : value.shape.back(), value.name);
    }
  }

  void check_id(const std::string& where, int id) const {
    if (id < 0 || id >= static_cast<int>(p_.values.size()))
      throw GraphError(where, "value ", id, " does not exist");
  }

  void write(int id) {
    if (written_[static_cast<size_t>(id)])
      throw GraphError(p_.value(id).name, "value ", id, " is written twice");
    written_[static_cast<size_t>(id)] = true;
  }

  void check_step(const Step& step) {
    check_id("program", step.output);
    const Value& y = p_.value(step.output);
    const std::string& where = y.name;
    validate(step.operation, where, overflow_);
    const std::vector<int64_t> sizes = input_sizes(step.operation);
    if (sizes.size() != step.inputs.size())
      throw GraphError(
          where, "has ", step.inputs.size(), " inputs, but its operation takes ", sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) check_input(step, i, sizes[i]);
    if (y.shape.elements() != output_size(step.operation)) {
      throw GraphError(where,
                       "gives ",
                       output_size(step.operation),
                       " elements, but its value has shape ",
                       y.shape);
    }
    if (y.is_codes() == gives_accumulators(step.operation))
      throw GraphError(where,
                       "gives ",
                       y.is_codes() ? "accumulators" : "codes",
                       ", but its value is declared as ",
                       y.is_codes() ? "codes" : "accumulators");
    if (y.is_codes()) {
      check_zero_point(step, y, y, output_zero_point(step.operation));
      check_codes(where, *y.params, step);
    }
    check_origin(where, step);
    write(step.output);
  }

  static void check_origin(const std::string& where, const Step& step) {
    const std::vector<float>& scale = step.origin.weight_scale;
    const int64_t channels = weight_channels(step.operation);
    bool fits = scale.size() <= 1 || std::ssize(scale) == channels;
    for (const float s : scale) fits = fits && channels > 0 && s > 0.0f && std::isfinite(s);
    if (!fits) {
      throw GraphError(
          where,
          "scales of weights must be positive and finite, one in all or one for each of ",
          channels,
          " channels of weights");
    }
  }

  void check_input(const Step& step, size_t i, int64_t size) const {
    const std::string& where = p_.value(step.output).name;
    const int id = step.inputs[i];
    check_id(where, id);
    if (!written_[static_cast<size_t>(id)])
      throw GraphError(where, "reads value ", id, ", which no layer wrote");
    const Value& x = p_.value(id);
    if (!x.is_codes())
      throw GraphError(x.name, "gives accumulators, which ", where, " cannot read");
    if (x.shape.elements() != size)
      throw GraphError(
          where, "input ", i, " has shape ", x.shape, ", expected ", size, " elements");
    const Value& y = p_.value(step.output);
    check_zero_point(step, x, y, input_zero_point(step.operation, i));
    check_bits(step, x, y);
    if (keeps_params(step.operation) && y.params && !(*y.params == *x.params))
      throw GraphError(
          where, "must keep the parameters of its input, ", *x.params, ", but has ", *y.params);
  }

  // A value that the step reads or writes; y is what it writes.
  void check_zero_point(const Step& step, const Value& value, const Value& y, int32_t zero) const {
    const int32_t given = stored_zero_point(*value.params);
    if (zero < 0 || zero == given) return;
    const auto* const pool = std::get_if<QuantizedAvgPool2d>(&step.operation);
    if (pool && pool->means_codes() && p_.value(step.inputs[0]).params == y.params) return;
    throw GraphError(y.name, "expects zero point ", zero, ", but the value has ", given);
  }

  // Products of bits rely on codes of 0 and 1.
  void check_bits(const Step& step, const Value& x, const Value& y) const {
    const QuantizedProduct* const p = product(step.operation);
    if (p == nullptr || p->x_bits != 1) return;
    const QType type = x.params->type;
    if (type.bits == 1 && !type.is_signed) return;
    throw GraphError(y.name, "expects codes of 1 bit, but the value has type ", type);
  }

  // Steps that read the value rely on the range of the value's type.
  void check_codes(const std::string& where, const QParams& params, const Step& step) const {
    const std::optional<CodeClamp> given =
        output_codes(step.operation, *p_.value(step.inputs[0]).params);
    const int32_t offset = stored_offset(params.type);
    if (!given ||
        (given->lo >= params.type.qmin() + offset && given->hi <= params.type.qmax() + offset)) {
      return;
    }
    throw GraphError(where,
                     "gives stored codes in [",
                     given->lo,
                     ", ",
                     given->hi,
                     "], but its value is ",
                     params.type,
                     " with stored codes in [",
                     params.type.qmin() + offset,
                     ", ",
                     params.type.qmax() + offset,
                     "]");
  }

  const Program& p_;
  std::vector<bool> written_;
  OverflowCheck overflow_;
};

/// Hashes the parts of a program by FNV-1a.
class Hash {
 public:
  void add(uint64_t value) {
    for (int i = 0; i < 8; ++i) byte(static_cast<uint8_t>(value >> (8 * i)));
  }
  void add(int64_t value) { add(static_cast<uint64_t>(value)); }
  void add(int32_t value) { add(static_cast<uint64_t>(int64_t{value})); }
  void add(std::string_view text) {
    add(static_cast<uint64_t>(text.size()));
    for (const char c : text) byte(static_cast<uint8_t>(c));
  }
  template <class List>
  void list(const List& values) {
    add(static_cast<uint64_t>(std::size(values)));
    for (const auto& value : values) add(int32_t{value});
  }
  void add(const Shape& shape) {
    add(static_cast<uint64_t>(shape.rank()));
    for (const int64_t extent : shape) add(extent);
  }
  void add(const QParams& params) {
    add(int32_t{params.type.bits} << 2 | int32_t{params.type.is_signed} << 1 |
        int32_t{params.type.narrow});
    for (const float scale : params.scale)
      add(static_cast<uint64_t>(std::bit_cast<uint32_t>(scale)));
    list(params.zero_point);
  }
  uint64_t value() const { return hash_.value(); }

  // describe() calls these for the members of operations.
  void operator()(const char*, int64_t value) { add(value); }
  void operator()(const char*, int32_t value) { add(value); }
  // The usual value is not hashed, so that programs saved before a member existed keep their hash.
  [[gnu::noinline]] void optional(const char* name, int64_t value, int64_t usual) {
    if (value == usual) return;
    add(std::string_view(name));
    add(value);
  }
  bool are_two(const char*, const auto& operands) { return operands.size() == 2; }
  void operator()(const char*, const std::vector<int32_t>& values) { list(values); }
  void words(const char*, const SharedArray<int32_t>& values) { list(values); }
  void bytes(const char*, const SharedArray<int32_t>& values) { list(values); }
  void operator()(const char*, const SharedArray<int32_t>& values) { list(values); }
  void operator()(const char*, const Constant& constant) {
    add(int32_t{constant.bits()});
    add(static_cast<uint64_t>(constant.size()));
    constant.each(0, constant.size(), [&](std::span<const int8_t> codes) {
      for (const int8_t code : codes) add(int32_t{code});
    });
  }
  void operator()(const char*, const std::vector<uint8_t>& values) { list(values); }
  void operator()(const char*, const StoredOutput& y) {
    for (const int32_t value : {y.zero_point, y.lo, y.hi}) add(value);
  }
  void operator()(const char*, const std::optional<Requantization>& output) {
    add(int32_t{output.has_value()});
    if (output) Requantization::describe(*output, *this);
  }
  template <class Entry>
  void operator()(const char*, const std::vector<Entry>& entries) {
    add(static_cast<uint64_t>(entries.size()));
    for (const Entry& entry : entries) Entry::describe(entry, *this);
  }
  void operator()(const char*, const std::vector<kernels::MeanMultiplier>& means) {
    add(static_cast<uint64_t>(means.size()));
    for (const auto& mean : means) {
      add(mean.count);
      add(mean.multiplier.m0);
      add(mean.multiplier.shift);
    }
  }

 private:
  void byte(uint8_t value) { hash_.add(value); }

  Fnv1a hash_;
};

/// Counts the bytes of an operation's arrays.
struct ArrayBytes {
  int64_t bytes_in_all = 0;

  void operator()(const char*, int64_t) {}
  void operator()(const char*, int32_t) {}
  void optional(const char*, int64_t, int64_t) {}
  bool are_two(const char*, const auto& operands) { return operands.size() == 2; }
  void operator()(const char*, const StoredOutput&) {}
  void operator()(const char*, const std::vector<int32_t>& values) { add(values.size() * 4); }
  void words(const char*, const SharedArray<int32_t>& values) { bytes_in_all += values.size() * 4; }
  void bytes(const char*, const SharedArray<int32_t>& values) { bytes_in_all += values.size(); }
  void operator()(const char*, const SharedArray<int32_t>& values) {
    bytes_in_all += values.size() * 4;
  }
  void operator()(const char*, const Constant& constant) {
    bytes_in_all += packed_bytes(constant.size(), constant.bits());
  }
  void operator()(const char*, const std::vector<uint8_t>& values) { add(values.size()); }
  void operator()(const char*, const std::optional<Requantization>& output) {
    if (output) Requantization::describe(*output, *this);
  }
  void operator()(const char*, const std::vector<QuantizedConcat::Part>& parts) {
    add(parts.size() * 5);
  }
  void operator()(const char*, const std::vector<QuantizedAdd::Operand>& operands) {
    add(operands.size() * 5);
  }
  void operator()(const char*, const std::vector<Gather::Axis>& axes) {
    for (const auto& axis : axes) Gather::Axis::describe(axis, *this);
  }
  void operator()(const char*, const std::vector<kernels::MeanMultiplier>& means) {
    add(means.size() * 5);
  }

 private:
  void add(size_t count) { bytes_in_all += static_cast<int64_t>(count); }
};

}  // namespace

const Value& Program::value(int id) const& {
  if (id < 0 || id >= std::ssize(values))
    throw GraphError("program", "value ", id, " does not exist");
  return values[static_cast<size_t>(id)];
}

void validate(const Program& program) { Validator(program).run(); }

uint64_t content_hash(const Program& program) {
  Hash hash;
  hash.add(static_cast<uint64_t>(program.values.size()));
  for (const Value& value : program.values) {
    hash.add(value.shape);
    if (value.params) hash.add(*value.params);
    hash.add(static_cast<uint64_t>(value.scale.size()));
    for (const double scale : value.scale) hash.add(std::bit_cast<uint64_t>(scale));
    if (value.features.empty()) continue;  // programs saved before features existed keep their hash
    hash.add(std::string_view("features"));
    for (const auto* numbers : {&value.features.offset, &value.features.scale}) {
      for (const float number : *numbers)
        hash.add(static_cast<uint64_t>(std::bit_cast<uint32_t>(number)));
    }
  }
  hash.list(program.inputs);
  hash.list(program.outputs);
  hash.add(static_cast<uint64_t>(program.steps.size()));
  for (const Step& step : program.steps) {
    hash.add(type(step.operation));
    std::visit([&](const auto& op) { op.describe(op, hash); }, step.operation);
    hash.list(step.inputs);
    hash.add(step.output);
  }
  return hash.value();
}

int64_t size_bytes(const Operation& op) {
  ArrayBytes bytes;
  std::visit([&](const auto& o) { o.describe(o, bytes); }, op);
  return bytes.bytes_in_all;
}

int64_t size_bytes(const Program& program) {
  int64_t bytes = 8 * static_cast<int64_t>(program.values.size());
  for (const Value& value : program.values) bytes += 8 * value.features.size();
  for (const Step& step : program.steps) bytes += size_bytes(step.operation);
  return bytes - ProgramConstants(program).repeated_bytes();
}

int64_t multiply_adds(const Program& program) {
  int64_t count = 0;
  for (const Step& step : program.steps) count += multiply_adds(step.operation);
  return count;
}

}  // namespace quantrain::integer
