#include <algorithm>
#include <limits>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "quant/export/onnx/export_onnx.hpp"
#include "tests/catch.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/quant/export/onnx_run.hpp"

namespace quantrain::quant::test {
namespace {

/// A convolution of images [5, 4, 3] with features, to accumulators with a scale for each channel.
integer::Program image_program() {
  integer::test::Builder b;
  const QParams x{{.bits = 8}, -1, {0.013f}, {77}};
  const int input = b.input({5, 4, 3}, x);
  b.program.values[0].features = {{0.5f, -3.0f, 100.0f}, {0.25f, 7.0f, 33.3f}};
  const kernels::Conv2dShape shape{
      .n = 1, .h = 5, .w = 4, .c = 3, .o = 6, .kh = 3, .kw = 2, .pad_h = 1};
  const integer::test::RandomProduct p({.outputs = 6, .length = shape.reduction(), .x = x}, 1);
  b.program.outputs = {b.accumulators("conv",
                                      integer::QuantizedConv2d{shape, p.product},
                                      {input},
                                      {shape.oh(), shape.ow(), 6},
                                      p.scale)};
  return b.program;
}

/// Raw values in and around the input's range.
std::vector<float> values_around_range(const integer::Value& value, int64_t samples) {
  Random random(5);
  std::vector<float> x(static_cast<size_t>(samples * value.shape.elements()));
  const Range range = value.params->float_range();
  for (size_t i = 0; i < x.size(); ++i) {
    const float z = random.uniform(range.min - 0.1f, range.max + 0.1f);
    const size_t f = value.features.empty() ? 0 : i % value.features.scale.size();
    x[i] = value.features.empty() ? z : value.features.offset[f] + value.features.scale[f] * z;
  }
  return x;
}

/// [N, H, W, C] as [N, C, H, W].
template <class T>
std::vector<T> with_channels_first(const std::vector<T>& x, int64_t pixels, int64_t channels) {
  std::vector<T> y(x.size());
  const auto of = [](int64_t i) { return static_cast<size_t>(i); };
  for (int64_t i = 0; i < std::ssize(x); ++i) {
    const int64_t n = i / (pixels * channels), p = i / channels % pixels, c = i % channels;
    y[of((n * channels + c) * pixels + p)] = x[of(i)];
  }
  return y;
}

}  // namespace

TEST_CASE("an exported file takes raw values and gives the engine's reals and classes",
          "[.][onnx_runtime]") {
  OnnxCases cases;
  constexpr int64_t kN = 7;
  const integer::Program program = image_program();
  const IntegerModel model{integer::Program(program)};
  const std::vector<float> x = values_around_range(program.value(program.inputs[0]), kN);
  std::vector<float> y(kN * 6 * 3 * 5);
  y.resize(static_cast<size_t>(kN * model.output_size()));
  model.run(x, y, Outside::kSaturate);
  std::vector<int32_t> classes(y.size() / 6);
  model.classify(x, classes, Outside::kSaturate);
  const std::vector<int64_t> indices(classes.begin(), classes.end());
  const Shape& out = program.value(program.outputs[0]).shape;
  const std::vector<float> x_first = with_channels_first(x, 20, 3);
  const std::vector<float> y_first = with_channels_first(y, out[0] * out[1], 6);
  for (const OnnxForm form : {OnnxForm::kExact, OnnxForm::kQdq}) {
    cases.add<float, float>(onnx_model(program, {.form = form}),
                            {kN, 3, 5, 4},
                            x_first,
                            {kN, 6, out[0], out[1]},
                            y_first);
    cases.add<float, int64_t>(onnx_model(program, {.form = form, .output = OnnxOutput::kClasses}),
                              {kN, 3, 5, 4},
                              x_first,
                              {kN, out[0], out[1]},
                              indices);
    cases.add<float, float>(
        onnx_model(program, {.form = form, .layout = OnnxLayout::kChannelsLast}),
        {kN, 5, 4, 3},
        x,
        {kN, out[0], out[1], 6},
        y);
  }
  CHECK(cases.run() == "");
}

TEST_CASE("an exported file gives the reals of codes, and the lowest of equal classes",
          "[.][onnx_runtime]") {
  integer::test::Builder b;
  const QParams x{{.bits = 4, .is_signed = true}, -1, {0.3f}, {-2}};
  const QParams y{{.bits = 3}, -1, {0.7f}, {3}};  // few codes: many are equal
  const int input = b.input({9, 5}, x);
  b.program.outputs = {b.codes("rescaled",
                               integer::QuantizedLookup::rescale(45, x, y, Activation::kNone),
                               {input},
                               {9, 5},
                               y)};
  constexpr int64_t kN = 20;
  const IntegerModel model{integer::Program(b.program)};
  const std::vector<float> values = values_around_range(b.program.value(0), kN);
  std::vector<float> reals(values.size());
  model.run(values, reals, Outside::kSaturate);
  std::vector<int32_t> classes(kN * 9);
  model.classify(values, classes, Outside::kSaturate);
  const std::vector<int64_t> indices(classes.begin(), classes.end());
  OnnxCases cases;
  cases.add<float, float>(onnx_model(b.program),
                          {kN, 5, 9},
                          with_channels_first(values, 9, 5),
                          {kN, 5, 9},
                          with_channels_first(reals, 9, 5));
  cases.add<float, int64_t>(onnx_model(b.program, {.output = OnnxOutput::kClasses}),
                            {kN, 5, 9},
                            with_channels_first(values, 9, 5),
                            {kN, 9},
                            indices);
  CHECK(cases.run() == "");
}

TEST_CASE("sums that use the whole range of int32 are shifted without overflow",
          "[.][onnx_runtime]") {
  integer::test::Builder b;
  const QParams x{{.bits = 8}, -1, {1.0f}, {0}};
  const int input = b.input({1}, x);
  integer::QuantizedProduct product;
  product.weight = std::vector<int8_t>{127, -127, 127, -127};
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max() - 127 * 255;
  product.bias = SharedArray<int32_t>(std::vector<int32_t>{kMost, -kMost, kMost, -kMost});
  constexpr int32_t kM0 = std::numeric_limits<int32_t>::max();
  product.output = integer::Requantization{
      std::vector<int32_t>(4, kM0), std::vector<int32_t>{62, 62, 1, 1}, {128, 0, 255}};
  const QParams y{{.bits = 8}, -1, {1.0f}, {128}};
  b.program.outputs = {
      b.codes("sums", integer::QuantizedLinear{1, 1, 4, product}, {input}, {4}, y)};
  OnnxCases cases;
  cases.add(b.program, 16);
  CHECK(cases.run() == "");
}

TEST_CASE("a file whose integers differ is found", "[.][onnx_runtime]") {
  const integer::Program program = integer::test::mlp();
  onnx::Model model =
      onnx_model(program, {.input = OnnxInput::kCodes, .output = OnnxOutput::kIntegers});
  const std::vector<uint8_t> codes = random_samples(program, 1, 1);
  std::vector<int32_t> logits(4);
  IntegerModel{integer::Program(program)}.run_codes(codes, logits);
  OnnxCases right;
  right.add<uint8_t, int32_t>(model, {1, 12}, codes, {1, 4}, logits);
  CHECK(right.run() == "");
  ++logits[3];
  OnnxCases wrong;
  wrong.add<uint8_t, int32_t>(model, {1, 12}, codes, {1, 4}, logits);
  CHECK(wrong.run().find("differs in 1 of 4, first at 3") != std::string::npos);
}

TEST_CASE("options that do not fit the program are refused", "[quant][onnx]") {
  const integer::Program program = integer::test::mlp();
  QUANTRAIN_CHECK_ERROR(onnx_model(program, {.int4_weights = true}), ExportError, "OnnxForm::kQdq");
  integer::Program reserved = program;
  reserved.metadata["quantrain.hash"] = "0";
  QUANTRAIN_CHECK_ERROR(onnx_model(reserved), ExportError, "quantrain.hash");
  integer::test::Builder b;
  const QParams x{{.bits = 8}, -1, {1.0f}, {0}};
  const int input = b.input({}, x);
  b.program.outputs = {b.codes("view", integer::View{1}, {input}, {}, x)};
  QUANTRAIN_CHECK_ERROR(
      onnx_model(b.program, {.output = OnnxOutput::kClasses}), ExportError, "no classes");
}

TEST_CASE("the lowest operator set that has the operators is written", "[quant][onnx]") {
  const integer::Program program = integer::test::every_operation();
  CHECK(onnx_model(program).opset() == 12);
  CHECK(onnx_model(program, {.form = OnnxForm::kQdq}).opset() == 13);
  CHECK(onnx_model(program, {.form = OnnxForm::kQdq, .int4_weights = true}).opset() == 21);
}

}  // namespace quantrain::quant::test
