#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/arithmetic/qparams.hpp"
#include "framework/core/shape.hpp"
#include "framework/integer/input_encoding.hpp"
#include "framework/integer/operation.hpp"

namespace quantrain::integer {

/// What the integers of a value mean.
struct Value {
  std::string name;  ///< path of the layer that gives it
  Shape shape;       ///< of one sample
  /// Of codes: real = scale * (q - zero_point). Accumulators have none.   docs/quantization.md (1)
  std::optional<QParams> params{};
  /// Of accumulators: real = scale[i % size] * integer of element i: one for all, or one for each
  /// channel.
  std::vector<double> scale{};
  /// Of an input: what is done to raw values before they become codes.   docs/quantization.md (20)
  InputFeatures features{};
  int node = -1;  ///< of the recorded graph, which holds the same integers; -1: none does

  bool is_codes() const { return params.has_value(); }
  friend bool operator==(const Value&, const Value&) = default;
};

/// One operation on values, which are given by their positions.
struct Step {
  Operation operation;
  std::vector<int> inputs;
  int output = 0;

  friend bool operator==(const Step&, const Step&) = default;
};

/// An integer network as plain data: what lowering makes, the file holds, the engine runs and
/// exporters read. A value is an input, or one step writes it before others read it.
struct Program {
  std::vector<Value> values;
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::vector<Step> steps;
  /// What its maker says of it, by name: classes, data, version. Stored in the file; the integers
  /// do not depend on it, nor does the hash.
  std::map<std::string, std::string> metadata{};

  const Value& value(int id) const& { return values[static_cast<size_t>(id)]; }
  Value value(int id) && { return std::move(values[static_cast<size_t>(id)]); }
  friend bool operator==(const Program&, const Program&) = default;
};

/// Throws: GraphError if a step reads what nothing wrote, values do not fit their steps or are
/// written twice, there is no input or output, or accumulators are read; QuantError or ShapeError
/// naming the layer for parameters and operations that make no sense. A program that passes is
/// defined on every input.
void validate(const Program& program);

/// Of everything that the integers and their meaning depend on: operations, wiring, shapes,
/// parameters; not of names and metadata. Equal on every machine.
uint64_t content_hash(const Program& program);

/// Bytes of weights (of 2 bits four to a byte, of 3 and 4 bits two), biases, multipliers, tables,
/// of scale and zero point of each value, and of the features of inputs.
int64_t size_bytes(const Operation& op);
int64_t size_bytes(const Program& program);
/// Multiplications and additions of products, of one sample.
int64_t multiply_adds(const Program& program);

}  // namespace quantrain::integer
