#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "framework/core/cpu.hpp"
#include "framework/integer/integer_model.hpp"
#include "fuzz/harness.hpp"

namespace quantrain::fuzz {

inline constexpr int64_t kMemory = int64_t{64} << 20;
inline constexpr int64_t kWork = int64_t{1} << 24;  // networks with more work are not run
inline constexpr int64_t kSamples = 2;

/// The work for one sample: multiply-adds, inputs and outputs, and elements in windows. A result
/// above kWork is not exact, because the sum is capped against overflow.
inline int64_t work(const integer::Program& program) {
  int64_t work = 0;
  const auto add = [&](int64_t some) { work = std::min(work, kWork) + std::min(some, kWork); };
  for (const std::vector<int>& ids : {program.inputs, program.outputs}) {
    for (const int id : ids) add(program.value(id).shape.elements());
  }
  for (const integer::Step& step : program.steps) {
    add(multiply_adds(step.operation));
    add(output_size(step.operation));
    std::visit(
        [&](const auto& op) {
          if constexpr (requires { op.shape; }) {
            const kernels::Conv2dShape& s = op.shape;
            add(s.y_elements() * std::min(s.kh, s.h) * std::min(s.kw, s.w));
          }
        },
        step.operation);
  }
  return work;
}

inline std::vector<std::vector<int32_t>> run(const integer::Program& program) {
  const IntegerModel model(program);
  std::vector<std::vector<uint8_t>> x;
  std::vector<std::vector<int32_t>> y;
  std::vector<std::span<const uint8_t>> from;
  std::vector<std::span<int32_t>> to;
  for (size_t i = 0; i < model.input_count(); ++i) {
    std::vector<uint8_t>& bytes =
        x.emplace_back(static_cast<size_t>(kSamples * model.input_shape(i).elements()));
    uint32_t state = static_cast<uint32_t>(i) + 1;
    for (uint8_t& byte : bytes)
      byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  }
  for (size_t i = 0; i < model.output_count(); ++i)
    y.emplace_back(static_cast<size_t>(kSamples * model.output_size(i)));
  for (const auto& bytes : x) from.emplace_back(bytes);
  for (auto& integers : y) to.emplace_back(integers);
  model.run_codes(from, to);
  return y;
}

/// Runs a network on every instruction set, unless that is too much work. The results must be
/// equal.
inline void run_everywhere(const integer::Program& program) {
  if (work(program) > kWork || program.inputs.size() + program.outputs.size() > 1000) return;
  const Isa chosen = chosen_isa();
  std::vector<std::vector<int32_t>> reference;
  for (const Isa isa : usable_isas()) {
    set_isa(isa);
    const std::vector<std::vector<int32_t>> y = run(program);
    if (reference.empty()) reference = y;
    if (y != reference) finding(std::string(isa_name(isa)) + " gives other integers");
  }
  set_isa(chosen);
}

}  // namespace quantrain::fuzz
