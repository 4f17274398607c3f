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

/// A value of a program and the meaning of its integers.
struct Value {
  std::string name;  ///< path of the layer that computes it
  Shape shape;       ///< of one sample
  /// For codes: real = scale * (q - zero_point). Empty for accumulators.   docs/quantization.md (1)
  std::optional<QParams> params{};
  /// For accumulators: real = scale[i % scale.size()] * integer for element i. One scale for all
  /// elements, or one for each channel.
  std::vector<double> scale{};
  /// For inputs: offsets and scales that are applied to raw values before they are quantized.
  /// docs/quantization.md (20)
  InputFeatures features{};

  bool is_codes() const { return params.has_value(); }
  friend bool operator==(const Value&, const Value&) = default;
};

/// What a step was before it became integers, for exporters and people. Each part may be missing.
/// Neither the integers nor the hash depends on it.
struct Origin {
  /// "operation": the type of the recorded node, such as "leaky_relu" or "avg_pool2d"; its
  /// attributes by name, as JSON, such as "alpha": "0.1" or "kernel": "[2,2]"; "activation": "relu"
  /// or "relu6" if one was fused.
  std::map<std::string, std::string> about{};
  /// Of a product: real weight = scale * integer, with one scale, or one for each channel of the
  /// output.   docs/quantization.md (5)
  std::vector<float> weight_scale{};

  friend bool operator==(const Origin&, const Origin&) = default;
};

/// One operation. Its inputs and output are positions in Program::values.
struct Step {
  Operation operation;
  std::vector<int> inputs;
  int output = 0;
  Origin origin{};

  friend bool operator==(const Step&, const Step&) = default;
};

/// An integer network as plain data. Lowering makes it, a file stores it, the engine runs it and
/// exporters read it. Each value is either an input, or written by exactly one step before other
/// steps read it.
struct Program {
  std::vector<Value> values;
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::vector<Step> steps;
  /// Named texts about the program, for example classes, data or version. They are stored in the
  /// file. Neither the integers nor the hash depends on them.
  std::map<std::string, std::string> metadata{};

  /// Throws: GraphError if there is no such value.
  const Value& value(int id) const&;
  Value value(int id) && { return value(id); }
  friend bool operator==(const Program&, const Program&) = default;
};

/// Proves that the program has a defined result for every input.
/// Throws: GraphError if there is no input or no output, if a value that is used does not exist, if
/// a value is neither an input nor written by a step, if a value is written twice (inputs count as
/// written), if a step reads a value before it is written, if a step has the wrong number of
/// inputs, if a value or a scale of weights does not fit its step, if an input of the program or of
/// a step holds accumulators, or if a value that is not an input has features; QuantError or
/// ShapeError naming the layer if an operation or parameter is invalid.
void validate(const Program& program);

/// Hash of everything that the integers and their meaning depend on: operations, wiring, shapes and
/// parameters, but not names, origins and metadata, nor how integers are stored or which steps
/// share them. Equal on every machine.
uint64_t content_hash(const Program& program);

/// Bytes of the packed weights (constant.hpp), biases, multipliers and tables. The size of a
/// program counts equal weights and equal biases once, and also includes the scale and zero point
/// of each value, and the features of its inputs.
int64_t size_bytes(const Operation& op);
int64_t size_bytes(const Program& program);
/// Multiply-adds of all products, for one sample.
int64_t multiply_adds(const Program& program);

}  // namespace quantrain::integer
