#include "quant/export/onnx/qdq_differences.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "framework/core/error.hpp"
#include "framework/integer/integer_model.hpp"
#include "quant/export/onnx/qdq.hpp"

namespace quantrain {
namespace onnx_export {
namespace {

using integer::Program;
using integer::Step;

/// half_even(real / scale_y) + zero_y within the clamp, in float32, if real / scale_y is given.
int32_t code(float steps, const StoredOutput& y) {
  const float rounded = half_even(steps) + static_cast<float>(y.zero_point);
  return static_cast<int32_t>(
      std::clamp(rounded, static_cast<float>(y.lo), static_cast<float>(y.hi)));
}

/// The codes of a runtime for one step, for n samples; empty if they are the engine's.
struct Runtime {
  const Program& program;
  const Step& step;
  int64_t n;
  const std::vector<std::vector<uint8_t>>& codes;  // of each value

  float scale(int id) const { return program.value(id).params->scale[0]; }
  const std::vector<uint8_t>& x(size_t i) const {
    return codes[static_cast<size_t>(step.inputs[i])];
  }

  template <class Op>
  std::vector<int32_t> product(const Op& op) const {
    const auto scales = weight_scales(program, step);
    if (!op.product.output || !scales) return {};
    std::vector<int32_t> sums(static_cast<size_t>(n * op.output_size()));
    integer::Prepared<Op>(op).accumulate(n, x(0).data(), sums.data());
    const float scale_x = scale(step.inputs[0]), scale_y = scale(step.output);
    for (size_t i = 0; i < sums.size(); ++i) {
      const float multiplier = scale_x * (*scales)[i % scales->size()] / scale_y;
      sums[i] = code(static_cast<float>(sums[i]) * multiplier, op.product.output->y);
    }
    return sums;
  }
  std::vector<int32_t> operator()(const integer::QuantizedConv2d& op) const { return product(op); }
  std::vector<int32_t> operator()(const integer::QuantizedLinear& op) const { return product(op); }

  std::vector<int32_t> operator()(const integer::QuantizedAdd& op) const {
    if (!is_pair_sum(program, step)) return {};
    const float scale_y = scale(step.output);
    const float a = scale(step.inputs[0]) / scale_y, b = scale(step.inputs[1]) / scale_y;
    std::vector<int32_t> result;
    for (size_t i = 0; i < x(0).size(); ++i) {
      const auto left = static_cast<float>(x(0)[i] - op.operands[0].zero_x);
      const auto right = static_cast<float>(x(1)[i] - op.operands[1].zero_x);
      result.push_back(code(a * left + b * right, op.y));
    }
    return result;
  }

  std::vector<int32_t> operator()(const integer::QuantizedMul& op) const {
    if (!is_near_product(program, step)) return {};
    const float scale_a = scale(step.inputs[0]), scale_b = scale(step.inputs[1]);
    const float scale_y = scale(step.output);
    std::vector<int32_t> result;
    for (int64_t i = 0; i < n * op.output_size(); ++i) {
      const int64_t sample = i / op.output_size();
      const auto at = static_cast<size_t>(sample * op.channels + i % op.channels);
      const float a = scale_a * static_cast<float>(x(0)[static_cast<size_t>(i)] - op.zero_a);
      const float b = scale_b * static_cast<float>(x(1)[at] - op.zero_b);
      result.push_back(code(a * b / scale_y, op.y));
    }
    return result;
  }

  std::vector<int32_t> operator()(const integer::QuantizedAvgPool2d& op) const {
    const kernels::Conv2dShape& s = op.shape;
    const std::optional<int64_t> divisor = pool_divisor(program, step);
    if (!divisor) return {};
    const std::vector<int64_t> rows = integer::counts_along(s.h, s.kh, s.stride_h, s.pad_h, s.oh());
    const std::vector<int64_t> columns =
        integer::counts_along(s.w, s.kw, s.stride_w, s.pad_w, s.ow());
    std::vector<int32_t> sums(static_cast<size_t>(n * op.output_size()));
    integer::Prepared<integer::QuantizedAvgPool2d>(op).accumulate(n, x(0).data(), sums.data());
    const float scale_x = scale(step.inputs[0]), scale_y = scale(step.output);
    for (size_t i = 0; i < sums.size(); ++i) {
      const size_t pixel = i / static_cast<size_t>(s.c);
      const int64_t count = *divisor > 0 ? *divisor
                                         : rows[pixel / columns.size() % rows.size()] *
                                               columns[pixel % columns.size()];
      const float mean = scale_x * static_cast<float>(sums[i]) / static_cast<float>(count);
      sums[i] = code(mean / scale_y, op.y);
    }
    return sums;
  }

  // In the exact form.
  std::vector<int32_t> operator()(const integer::Gather&) const { return {}; }
  std::vector<int32_t> operator()(const integer::QuantizedConcat&) const { return {}; }
  std::vector<int32_t> operator()(const integer::QuantizedLookup&) const { return {}; }
  std::vector<int32_t> operator()(const integer::QuantizedMaxPool2d&) const { return {}; }
  std::vector<int32_t> operator()(const integer::QuantizedSoftmax&) const { return {}; }
  std::vector<int32_t> operator()(const integer::View&) const { return {}; }
};

/// The engine's codes of every value, for n samples. Accumulators have none.
std::vector<std::vector<uint8_t>> all_codes(const IntegerModel& model,
                                            int64_t n,
                                            const std::vector<const uint8_t*>& inputs) {
  const Program& program = model.program();
  std::vector<std::vector<uint8_t>> codes(program.values.size());
  const auto keep = [&](int id, const uint8_t* from) {
    const integer::Value& value = program.value(id);
    if (value.is_codes())
      codes[static_cast<size_t>(id)].assign(from, from + n * value.shape.elements());
  };
  for (size_t i = 0; i < inputs.size(); ++i) keep(program.inputs[i], inputs[i]);
  model.trace(n, inputs, [&](size_t step, const void* output) {
    keep(program.steps[step].output, static_cast<const uint8_t*>(output));
  });
  return codes;
}

}  // namespace
}  // namespace onnx_export

std::vector<QdqDifference> qdq_differences(const integer::Program& program,
                                           std::span<const uint8_t> samples) {
  const IntegerModel model{integer::Program(program)};
  int64_t size = 0;
  for (const int id : program.inputs) size += program.value(id).shape.elements();
  const std::ptrdiff_t bytes = std::ssize(samples);
  if (bytes == 0 || bytes % size != 0)
    throw ShapeError(
        "qdq_differences", "expected whole samples of ", size, " codes, got ", bytes, " codes");
  const int64_t n = bytes / size;
  std::vector<QdqDifference> result(program.steps.size());
  std::vector<bool> is_left(program.steps.size());
  for (int64_t begin = 0; begin < n; begin += IntegerModel::kChunk) {
    const int64_t count = std::min(n - begin, IntegerModel::kChunk);
    std::vector<const uint8_t*> inputs;
    int64_t first = 0;
    for (const int id : program.inputs) {
      const int64_t elements = program.value(id).shape.elements();
      inputs.push_back(samples.data() + first + begin * elements);
      first += n * elements;
    }
    const auto codes = onnx_export::all_codes(model, count, inputs);
    for (size_t i = 0; i < program.steps.size(); ++i) {
      const integer::Step& step = program.steps[i];
      const std::vector<int32_t> runtime =
          std::visit(onnx_export::Runtime{program, step, count, codes}, step.operation);
      const std::vector<uint8_t>& engine = codes[static_cast<size_t>(step.output)];
      is_left[i] = is_left[i] || !runtime.empty();
      result[i].layer = program.value(step.output).name;
      result[i].codes += std::ssize(runtime);
      for (size_t k = 0; k < runtime.size(); ++k) {
        const int32_t difference = std::abs(runtime[k] - engine[k]);
        result[i].different += difference != 0;
        result[i].most = std::max(result[i].most, difference);
      }
    }
  }
  std::vector<QdqDifference> left;
  for (size_t i = 0; i < result.size(); ++i)
    if (is_left[i]) left.push_back(std::move(result[i]));
  return left;
}

}  // namespace quantrain
