#include "framework/metrics/evaluate.hpp"

#include <cstdint>
#include <span>

#include "framework/core/buffer.hpp"
#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/integer/saturation.hpp"

namespace quantrain {
namespace {

constexpr const char* kRunModel = "evaluate";

void check_meaning(const Codes& codes, const IntegerModel& model, size_t i) {
  const integer::InputFeatures& features = model.input_features(i);
  const bool same_features =
      codes.features == nullptr ? features.empty() : *codes.features == features;
  const QParams& expected = model.input_params(i);
  if (codes.params == expected && same_features) return;
  const Range given = codes.params.float_range();
  const Range own = expected.float_range();
  throw QuantError(kRunModel,
                   "the codes of input ",
                   i,
                   " stand for [",
                   given.min,
                   ", ",
                   given.max,
                   "], and the model's for [",
                   own.min,
                   ", ",
                   own.max,
                   same_features ? "]" : "], with other features",
                   ": declare the data as you declared the data that the model was made for");
}

/// The codes of one input of a batch.
Buffer<uint8_t> codes_of(const Tensor& x, const IntegerModel& model, size_t i) {
  Buffer<uint8_t> codes(x.elements());
  if (const std::shared_ptr<const Codes> own = x.source_codes()) {
    check_meaning(*own, model, i);
    std::copy_n(own->u8(), x.elements(), codes.data());
  } else {
    const Floats floats = x.floats();
    const std::span<const float> values(floats.data(), static_cast<size_t>(floats.size()));
    const int64_t outside =
        model.quantize_input(values, {codes.data(), static_cast<size_t>(codes.size())}, i);
    integer::check_outside(
        Outside::kRefuseMost,
        integer::EncodedValues{
            .values = values, .outside = outside, .samples = x.dim(0), .columns = x.dim(-1)},
        model.input_params(i),
        model.input_features(i),
        kRunModel,
        "input " + std::to_string(i),
        "pass values in the units of the training data, or encode them with "
        "Outside::kSaturate (SampleArray::encoded)");
  }
  return codes;
}

std::vector<Tensor> run(const IntegerModel& model, const Batch& batch) {
  const DefaultRounding rounding;
  const std::vector<Tensor> inputs = batch.inputs();
  std::vector<Buffer<uint8_t>> codes;
  std::vector<std::span<const uint8_t>> x;
  for (size_t i = 0; i < inputs.size() && i < model.input_count(); ++i) {
    codes.push_back(codes_of(inputs[i], model, i));
    x.emplace_back(codes.back().data(), static_cast<size_t>(codes.back().size()));
  }
  if (inputs.size() != model.input_count())
    throw ShapeError(
        kRunModel, "the batch has ", inputs.size(), " inputs, and the model ", model.input_count());
  std::vector<std::vector<int32_t>> sums;
  std::vector<std::span<int32_t>> y;
  for (size_t k = 0; k < model.output_count(); ++k)
    sums.emplace_back(static_cast<size_t>(batch.size() * model.output_size(k)));
  for (std::vector<int32_t>& integers : sums) y.emplace_back(integers);
  model.run_codes(x, y);
  std::vector<Tensor> outputs;
  for (size_t k = 0; k < model.output_count(); ++k) {
    const integer::Value& value = model.program().value(model.program().outputs[k]);
    std::vector<int64_t> extents{batch.size()};
    extents.insert(extents.end(), value.shape.begin(), value.shape.end());
    Tensor output = Tensor::empty(Shape(extents));
    float* const real = output.mutable_data();
    for (size_t i = 0; i < sums[k].size(); ++i) {
      const double scale = value.params ? static_cast<double>(value.params->scale[0])
                                        : value.scale[i % value.scale.size()];
      real[i] = static_cast<float>(scale * sums[k][i]);
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

Runner runner(const IntegerModel& model) {
  return [&model](const Batch& batch) { return run(model, batch); };
}

}  // namespace

Metrics evaluate(const IntegerModel& model,
                 const DataLoader& batches,
                 const std::vector<std::string>& metrics,
                 const EvaluateOptions& options) {
  return evaluate(runner(model), batches, metrics, options);
}

Tensor predict(const IntegerModel& model, const DataLoader& batches) {
  return predict(runner(model), batches);
}

std::vector<Tensor> predict_outputs(const IntegerModel& model, const DataLoader& batches) {
  return predict_outputs(runner(model), batches);
}

}  // namespace quantrain
