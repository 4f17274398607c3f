#include "quant/integer/integer_model.hpp"

#include <algorithm>

#include "framework/core/error.hpp"
#include "framework/kernels/integer.hpp"
#include "quant/integer/params_attributes.hpp"

namespace quantrain::quant {
namespace {

constexpr size_t kMostInputs = 64;
// Of one sample of a value: no size of a chunk's memory wraps around.
constexpr int64_t kMostElements = int64_t{1} << 30;

// Bytes of one sample of a layer's output; accumulators have four each.
int64_t output_bytes(const IntegerLayer& layer) {
  return layer.output_shape().elements() * (layer.output_kind() == OutputKind::kCodes ? 1 : 4);
}

void check_size(const std::string& where, const Shape& shape) {
  if (shape.elements() > kMostElements)
    throw ShapeError(
        where, "a value of shape ", shape, " has more than ", kMostElements, " elements");
}

// A multiple of 64 keeps every value aligned, whatever the number of samples.
int64_t padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

IntegerModel::IntegerModel(Parts parts)
    : input_shape_(parts.input_shape),
      input_params_(std::move(parts.input_params)),
      layers_(std::move(parts.layers)),
      input_node_(parts.input_node),
      output_(parts.output) {
  check_activation(input_params_, "IntegerModel");
  check_size("IntegerModel", input_shape_);
  std::vector<const IntegerLayer*> makers{nullptr};  // of each value; the input has none
  for (const Layer& step : layers_) {
    const std::vector<Shape> expected = step.layer->input_shapes();
    if (expected.size() != step.inputs.size() || expected.size() > kMostInputs) {
      throw GraphError(
          step.layer->name(), step.inputs.size(), " inputs for a layer of ", expected.size());
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      const int id = step.inputs[i];
      if (id < 0 || id >= static_cast<int>(makers.size()))
        throw GraphError(step.layer->name(), "reads value ", id, ", which no layer wrote");
      const IntegerLayer* maker = makers[static_cast<size_t>(id)];
      const Shape found = maker == nullptr ? input_shape_ : maker->output_shape();
      if (!(found == expected[i]))
        throw GraphError(
            step.layer->name(), "input ", i, " has shape ", found, ", expected ", expected[i]);
    }
    if (step.output != static_cast<int>(makers.size()))
      throw GraphError(
          step.layer->name(), "writes value ", step.output, ", expected ", makers.size());
    check_size(step.layer->name(), step.layer->output_shape());
    makers.push_back(step.layer.get());
  }
  if (layers_.empty() || output_ != layers_.back().output) {
    throw GraphError(
        "IntegerModel", "the output is value ", output_, ", expected that of the last layer");
  }
  for (const Layer& step : layers_) {
    if (step.output != output_ && step.layer->output_kind() == OutputKind::kAccumulators)
      throw GraphError(step.layer->name(), "gives accumulators, and is not the output");
  }
  const IntegerLayer& last = *layers_.back().layer;
  outputs_ = last.output_shape().elements();
  if (last.output_kind() == OutputKind::kAccumulators) {
    logit_scale_ = last.accumulator_scale();
  } else {
    const QParams params = last.output_params();
    logit_scale_ = static_cast<double>(params.scale[0]);
    logit_zero_ = stored_zero_point(params);
  }
  plan_memory();
}

// First fit over the layers in order: a value's place is free again after its last reader.
void IntegerModel::plan_memory() {
  const size_t values = layers_.size() + 1;
  roots_.assign(values, 0);
  std::vector<int64_t> bytes(values);
  std::vector<size_t> last_use(values, 0);
  bytes[0] = padded(input_shape_.elements());
  for (size_t step = 0; step < layers_.size(); ++step) {
    const Layer& layer = layers_[step];
    const bool view = layer.layer->is_view();
    roots_[step + 1] = view ? roots_[static_cast<size_t>(layer.inputs[0])] : step + 1;
    bytes[step + 1] = padded(output_bytes(*layer.layer));
    for (const int id : layer.inputs) last_use[roots_[static_cast<size_t>(id)]] = step;
  }
  last_use[roots_[static_cast<size_t>(output_)]] = layers_.size();

  struct Block {
    int64_t begin, end;
    size_t value;
  };
  std::vector<Block> live;  // ascending
  offsets_.assign(values, 0);
  const auto place = [&](size_t value) {
    int64_t begin = 0;
    auto next = live.begin();
    while (next != live.end() && next->begin - begin < bytes[value]) begin = (next++)->end;
    live.insert(next, {begin, begin + bytes[value], value});
    offsets_[value] = begin;
    sample_bytes_ = std::max(sample_bytes_, begin + bytes[value]);
  };
  place(0);
  for (size_t step = 0; step < layers_.size(); ++step) {
    const size_t value = step + 1;
    if (roots_[value] != value) {
      offsets_[value] = offsets_[roots_[value]];
    } else {
      place(value);
    }
    std::erase_if(live, [&](const Block& block) { return last_use[block.value] <= step; });
  }
}

void IntegerModel::run_chunk(
    int64_t n, const uint8_t* x, int32_t* logits, uint8_t* memory, const Visitor* visit) const {
  const auto address = [&](int id) { return memory + n * offsets_[static_cast<size_t>(id)]; };
  const auto source = [&](int id) {
    return roots_[static_cast<size_t>(id)] == 0 ? x : address(id);
  };
  const void* result = nullptr;
  for (size_t step = 0; step < layers_.size(); ++step) {
    const Layer& layer = layers_[step];
    const uint8_t* inputs[kMostInputs];
    for (size_t i = 0; i < layer.inputs.size(); ++i) inputs[i] = source(layer.inputs[i]);
    const bool is_result = layer.output == output_;
    const void* written = inputs[0];
    if (!layer.layer->is_view()) {
      const bool direct =
          is_result && layer.layer->output_kind() == OutputKind::kAccumulators && logits != nullptr;
      void* const output = direct ? static_cast<void*>(logits) : address(layer.output);
      layer.layer->run(n, {inputs, layer.inputs.size()}, output);
      written = output;
    }
    if (visit != nullptr) (*visit)(step, written);
    if (is_result) result = written;
  }
  if (logits == nullptr || result == logits) return;
  const auto* codes = static_cast<const uint8_t*>(result);
  for (int64_t i = 0; i < n * outputs_; ++i) logits[i] = codes[i] - logit_zero_;
}

void IntegerModel::quantize_input(int64_t n, const float* x, uint8_t* codes) const {
  const kernels::QuantizeF32 q{
      .scale = input_params_.scale[0],
      .zero_point = input_params_.zero_point[0],
      .qmin = input_params_.type.qmin(),
      .qmax = input_params_.type.qmax(),
      .offset = stored_zero_point(input_params_) - input_params_.zero_point[0]};
  if (!kernels::quantize_f32_u8(n * input_shape_.elements(), x, q, codes, nullptr)) {
    throw DataError("IntegerModel", "the input has a NaN or an infinity");
  }
}

template <class Input, class Output>
void IntegerModel::run_chunks(int64_t n, const Input* x, Output* y) const {
  if (n < 0) throw ShapeError("IntegerModel", "number of samples is negative: ", n);
  if (n == 0) return;
  const int64_t chunk = std::min(n, kChunk);
  const int64_t sample = input_shape_.elements();
  Buffer<uint8_t> memory(chunk * sample_bytes_);
  Buffer<int32_t> integers(std::is_same_v<Output, int32_t> ? 0 : chunk * outputs_);
  for (int64_t first = 0; first < n; first += chunk) {
    const int64_t count = std::min(chunk, n - first);
    const uint8_t* codes = nullptr;
    if constexpr (std::is_same_v<Input, float>) {
      quantize_input(count, x + first * sample, memory.data() + count * offsets_[0]);
      codes = memory.data() + count * offsets_[0];
    } else {
      codes = x + first * sample;
    }
    if constexpr (std::is_same_v<Output, int32_t>) {
      run_chunk(count, codes, y + first * outputs_, memory.data(), nullptr);
    } else {
      run_chunk(count, codes, integers.data(), memory.data(), nullptr);
      for (int64_t i = 0; i < count * outputs_; ++i) {
        y[first * outputs_ + i] = static_cast<float>(logit_scale_ * integers[i]);
      }
    }
  }
}

void IntegerModel::run(int64_t n, const uint8_t* x, int32_t* logits) const {
  run_chunks(n, x, logits);
}
void IntegerModel::run(int64_t n, const float* x, int32_t* logits) const {
  run_chunks(n, x, logits);
}
void IntegerModel::run(int64_t n, const uint8_t* x, float* logits) const {
  run_chunks(n, x, logits);
}
void IntegerModel::run(int64_t n, const float* x, float* logits) const { run_chunks(n, x, logits); }

namespace {

template <class Input>
void classify_with(const IntegerModel& model, int64_t n, const Input* x, int32_t* classes) {
  if (n < 0) throw ShapeError("IntegerModel", "number of samples is negative: ", n);
  Buffer<int32_t> logits(n * model.outputs());
  model.run(n, x, logits.data());
  for (int64_t i = 0; i < n; ++i) {
    const int32_t* const row = logits.data() + i * model.outputs();
    classes[i] = static_cast<int32_t>(std::max_element(row, row + model.outputs()) - row);
  }
}

}  // namespace

void IntegerModel::classify(int64_t n, const uint8_t* x, int32_t* classes) const {
  classify_with(*this, n, x, classes);
}

void IntegerModel::classify(int64_t n, const float* x, int32_t* classes) const {
  classify_with(*this, n, x, classes);
}

void IntegerModel::trace(int64_t n, const uint8_t* x, const Visitor& visit) const {
  if (n < 0 || n > kChunk)
    throw ShapeError("IntegerModel", "trace takes 0 to ", kChunk, " samples, got ", n);
  Buffer<uint8_t> memory(n * sample_bytes_);
  run_chunk(n, x, nullptr, memory.data(), &visit);
}

int64_t IntegerModel::size_bytes() const {
  int64_t bytes = 8;  // scale and zero point of the input
  for (const Layer& layer : layers_) bytes += layer.layer->size_bytes();
  return bytes;
}

}  // namespace quantrain::quant
