#include "framework/integer/integer_model.hpp"

#include <algorithm>
#include <ostream>

#include "framework/core/error.hpp"
#include "framework/integer/classes.hpp"
#include "framework/integer/integer_model_ready.hpp"
#include "framework/integer/program_constants.hpp"
#include "framework/integer/program_file.hpp"
#include "framework/integer/program_table.hpp"

namespace quantrain {

using integer::Program;
using integer::Step;
using integer::Value;

namespace {

constexpr const char* kWhere = "IntegerModel";

Program validated(Program program) {
  integer::validate(program);
  return program;
}

// The panels of the kernels are the only copy of the weights that a model keeps. Steps share them.
Program in_panels(Program program, KeepWeights keep) {
  if (keep != KeepWeights::kFast && keep != KeepWeights::kSmall)
    throw DataError(kWhere, "keeps weights fast or small, got ", static_cast<int>(keep));
  integer::share_constants(program);
  integer::set_keep(program, keep);
  std::map<integer::PanelKey, integer::Constant> panels;
  for (Step& step : program.steps) {
    integer::QuantizedProduct* const p = integer::product(step.operation);
    if (p == nullptr) continue;
    const auto [at, is_new] = panels.try_emplace(integer::panel_key(step.operation));
    if (is_new) {
      at->second = p->weight.in_panels(integer::weights_shape(step.operation), p->is_binary());
    }
    p->weight = at->second;
  }
  return program;
}

const Value& value_at(const Program& program,
                      const std::vector<int>& ids,
                      size_t i,
                      const char* kind) {
  if (i >= ids.size()) throw ShapeError(kWhere, "no ", kind, " ", i, ": there are ", ids.size());
  return program.value(ids[i]);
}

}  // namespace

IntegerModel::Ready::Ready(Program valid, KeepWeights keep_weights)
    : keep(keep_weights),
      program(in_panels(std::move(valid), keep_weights)),
      plan(plan_memory(program)),
      input_of(program.values.size(), -1),
      output_of(program.values.size(), -1) {
  operations.reserve(program.steps.size());
  for (Step& step : program.steps) {
    const integer::PreparedOperation& prepared = operations.emplace_back(step.operation);
    if (const auto* const params = prepared.params())
      integer::share_arrays(*integer::product(step.operation), *params);
    least_to_share.push_back(integer::least_samples_to_share(step.operation));
  }
  for (const int id : program.inputs) {
    input_of[static_cast<size_t>(id)] = static_cast<int>(input_elements.size());
    input_elements.push_back(program.value(id).shape.elements());
  }
  for (const int id : program.outputs) {
    output_of[static_cast<size_t>(id)] = static_cast<int>(output_elements.size());
    output_elements.push_back(program.value(id).shape.elements());
  }
}

IntegerModel::IntegerModel(Program program, KeepWeights keep)
    : ready_(std::make_shared<const Ready>(validated(std::move(program)), keep)) {}

const Program& IntegerModel::program() const& { return ready_->program; }
Program IntegerModel::program() const&& { return ready_->program; }

const Shape& IntegerModel::input_shape(size_t i) const& {
  return value_at(program(), program().inputs, i, "input").shape;
}

const QParams& IntegerModel::input_params(size_t i) const& {
  return *value_at(program(), program().inputs, i, "input").params;
}

const integer::InputFeatures& IntegerModel::input_features(size_t i) const& {
  return value_at(program(), program().inputs, i, "input").features;
}

int64_t IntegerModel::output_size(size_t i) const {
  return value_at(program(), program().outputs, i, "output").shape.elements();
}

double IntegerModel::logit_scale(size_t i) const {
  const Value& value = value_at(program(), program().outputs, i, "output");
  if (value.params) return static_cast<double>(value.params->scale[0]);
  if (value.scale.size() != 1) {
    throw QuantError(value.name,
                     "the output has ",
                     value.scale.size(),
                     " scales: run() on floats gives real values; one scale needs per-tensor "
                     "weights (WeightConfig::per_channel = false for this layer)");
  }
  return value.scale[0];
}

int64_t IntegerModel::samples_to_classify(size_t x, size_t classes) const {
  const int64_t rows = output_size() / class_count(program().value(program().outputs[0]));
  const Shape& sample = input_shape();
  const auto elements = static_cast<int64_t>(x);
  const int64_t n = elements / sample.elements();
  if (elements % sample.elements() != 0)
    throw ShapeError(kWhere, x, " elements are not a whole number of samples ", sample);
  if (static_cast<int64_t>(classes) != n * rows) {
    throw ShapeError(
        kWhere, "there is room for ", classes, " classes, but ", n, " samples have ", n * rows);
  }
  return n;
}

int64_t IntegerModel::kept_bytes() const { return integer::kept_bytes(program()); }

KeepWeights IntegerModel::keeps() const { return ready_->keep; }

int64_t IntegerModel::memory(int64_t n) const {
  // The last chunk of a long run may be shared in another way than the others.
  const int64_t last = n > kChunk ? integer::memory(program(), n % kChunk) : 0;
  return std::max(last, integer::memory(program(), std::min(n, kChunk)));
}

void IntegerModel::save(const std::string& path,
                        const std::map<std::string, std::string>& metadata) const {
  if (metadata.empty()) return save_program(path, program());
  Program named = program();  // shares the weights
  for (const auto& [key, value] : metadata) named.metadata[key] = value;
  save_program(path, named);
}

IntegerModel IntegerModel::load(const std::string& path,
                                std::optional<int64_t> memory_limit,
                                KeepWeights keep) {
  return IntegerModel(
      std::make_shared<const Ready>(integer::load_program(path, memory_limit, keep), keep));
}

IntegerModel IntegerModel::load(std::span<const uint8_t> file,
                                std::optional<int64_t> memory_limit,
                                KeepWeights keep) {
  return IntegerModel(std::make_shared<const Ready>(
      integer::parse_program(file, "model", memory_limit, keep), keep));
}

std::ostream& operator<<(std::ostream& stream, const IntegerModel& model) {
  return stream << model.program();
}

}  // namespace quantrain
