#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/autograd/ops/cross_entropy.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/optim/adam.hpp"
#include "layers/layers.hpp"
#include "layers/network/network_file.hpp"
#include "quant/export/onnx/export_onnx.hpp"
#include "quant/import/onnx/import_quantized_onnx.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/import/quantized_onnx_files.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

// Networks of tests/reference/make_quantized_onnx.py: files of ONNX Runtime's quantizer, of
// PyTorch, and as Brevitas writes them, with the results of ONNX Runtime's integer kernels; and
// small ones whose codes follow by hand.
namespace quantrain {
namespace {

using quant::QuantizedOnnx;
using quant::QuantizedOnnxOptions;

const std::string kQuantizedFolder = std::string(QUANTRAIN_TEST_DATA) + "/quantized/";

Tensor tensor_of_case(const nlohmann::json& entry) {
  return Tensor::from(Shape(entry.at("shape").get<std::vector<int64_t>>()),
                      entry.at("values").get<std::vector<float>>());
}

std::vector<float> deployed(const IntegerModel& model, const Tensor& x) {
  const std::vector<float> values = test::values(x);
  std::vector<float> y(static_cast<size_t>(x.dim(0) * model.output_size()));
  model.run(values, y);
  return y;
}

QuantizedOnnx import_parts(const test::OnnxParts& parts, const QuantizedOnnxOptions& options = {}) {
  const test::TemporaryFolder folder;
  const std::vector<uint8_t> bytes = test::onnx_model(parts);
  test::write_bytes(folder / "test.onnx", bytes);
  return quant::import_quantized_onnx(folder / "test.onnx", options);
}

IntegerModel converted(QuantizedOnnx& imported) {
  return quant::convert(imported.network, imported.network.example());
}

TEST_CASE("a quantized ONNX file becomes the integers of the exporter's runtime",
          "[quant][import][onnx]") {
  const nlohmann::json cases =
      nlohmann::json::parse(std::ifstream(kQuantizedFolder + "codes.json"));
  REQUIRE(cases.size() == 9);
  for (const auto& [name, vectors] : cases.items()) {
    CAPTURE(name);
    QuantizedOnnx imported = quant::import_quantized_onnx(kQuantizedFolder + name + ".onnx");
    CHECK(imported.report.is_complete());
    const IntegerModel model = converted(imported);
    const Tensor x = tensor_of_case(vectors.at("x"));
    const std::vector<float> y = deployed(model, x);
    const std::vector<float> expected = test::values(tensor_of_case(vectors.at("y")));
    REQUIRE(y.size() == expected.size());
    const std::optional<QParams>& params = model.program().value(model.program().outputs[0]).params;
    // A code is a multiple of its scale; sums of integers times scales are those of floats.
    const float margin = params ? 0.01f * params->scale[0] : 1e-5f;
    for (size_t i = 0; i < y.size(); ++i)
      CHECK(y[i] == test::Approx(expected[i]).margin(margin).epsilon(0));
    // The prepared network simulates the same integers.
    const NoGrad no_grad;
    CHECK(test::values(imported.network(x)) == y);
  }
}

TEST_CASE("an imported network has the parameters of the file", "[quant][import][onnx]") {
  QuantizedOnnx imported = import_parts(test::onnx_qdq_gemm());
  Network& net = imported.network;
  CHECK(imported.report.dialect == "QDQ");
  TextStream text;
  text << imported.report;
  CHECK(text.str() ==
        "Quantized ONNX file (QDQ)\n"
        "  x  input  u8 scale 0.5 zero point 10\n"
        "  fc  weights  s8 narrow per channel (2, axis 0)\n"
        "  fc  result  u8 scale 2 zero point 100\n");
  const QParams weights = quant::weight_quantizer(net, "fc").params();
  CHECK(weights == QParams{{8, true, true}, 0, {0.25f, 0.5f}, {0, 0}});
  CHECK(quant::output_quantizer(net, "fc").params() == QParams{{}, -1, {2.0f}, {100}});
  CHECK(quant::Plugged(net).inputs[0]->params() == QParams{{}, -1, {0.5f}, {10}});
  // y = 2 (code - 100), code = half up((x w + b) / 2) + 100, by hand for x = {1, -2, 3}:
  // 0.25 (1 - 4 + 9) + 1 = 2.5 and 0.5 (-4 - 10 - 381) - 3 = -200.5, so the codes are 101 and 0.
  const IntegerModel model = converted(imported);
  CHECK(deployed(model, Tensor::from({1, 3}, std::vector<float>{1, -2, 3})) ==
        std::vector<float>{2, -200});
  // Codes of the input: half even(x / 0.5) + 10.
  std::vector<uint8_t> codes(3);
  CHECK(model.quantize_input(std::vector<float>{1.0f, -2.0f, 0.3f}, codes) == 0);
  CHECK(codes == std::vector<uint8_t>{12, 6, 11});
}

TEST_CASE("operators of codes are imported like pairs of quantizers", "[quant][import][onnx]") {
  QuantizedOnnx imported = import_parts(test::onnx_qoperator_matmul());
  CHECK(imported.report.dialect == "QOperator");
  // By hand, for x = {1, -2, 3}: the product {1.5, -197.5} has the codes {101, 1}, so it is
  // {2, -198}; plus b = {-62.5, 61} is {-60.5, -137}, whose codes round to {70, 32}.
  const IntegerModel model = converted(imported);
  CHECK(deployed(model, Tensor::from({1, 3}, std::vector<float>{1, -2, 3})) ==
        std::vector<float>{-60, -136});
}

TEST_CASE("Quant keeps bits, and weights keep their codes when a batch norm is folded",
          "[quant][import][onnx]") {
  QuantizedOnnx imported = import_parts(test::onnx_qonnx());
  CHECK(imported.report.dialect == "QONNX");
  Network& net = imported.network;
  REQUIRE(net.steps().size() == 1);
  const std::string layer = net.steps()[0].name;
  // Codes {1, -1, 2} (0.6 / 0.25 = 2.4) and {3, -2, 1}; the factors are 2 / sqrt(0.25 + 1e-5) and
  // -1 / sqrt(4 + 1e-5).
  const QParams weights = quant::weight_quantizer(net, layer).params();
  CHECK(weights.type == QType{3, true, true});
  CHECK(weights.scale[0] == test::Approx(0.25 * 2 / std::sqrt(0.25001)).epsilon(1e-6));
  CHECK(weights.scale[1] == test::Approx(0.5 / std::sqrt(4.00001)).epsilon(1e-6));
  CHECK(quant::output_quantizer(net, layer).params() == QParams{{4, true, false}, -1, {0.5f}, {0}});
  const IntegerModel model = converted(imported);
  const auto& linear = std::get<integer::QuantizedLinear>(model.program().steps.back().operation);
  CHECK(linear.product.weight.values() == std::vector<int8_t>{1, -1, 2, -3, 2, -1});
}

TEST_CASE("quantizers that no layer can have stay as steps of their own", "[quant][import][onnx]") {
  // The pool keeps the codes of the sum, and its quantizer changes nothing. That of the Flatten has
  // parameters of its own, and there is no layer between.
  QuantizedOnnx imported = import_parts(test::onnx_qdq_image());
  std::vector<std::string> types;
  for (const NetworkStep& step : imported.network.steps()) types.emplace_back(step.layer->type());
  CHECK(types == std::vector<std::string>{
                     "Conv2d", "ReLU", "Add", "MaxPool2d", "GlobalAvgPool2d", "Clamp", "Reshape"});
  CHECK(quant::weight_quantizer(imported.network, "conv").params().type == QType{4, true, true});
  // Clip of codes: 4 bits.
  const std::string relu = imported.network.steps()[1].name;
  CHECK(quant::output_quantizer(imported.network, relu).params() ==
        QParams{{4, false, false}, -1, {2.0f}, {0}});
  const Tensor x = test::random_tensor({3, 4, 4, 2}, 1, -4.0f, 4.0f);
  const NoGrad no_grad;
  const std::vector<float> y = deployed(converted(imported), x);
  CHECK(test::values(imported.network(x)) == y);
  for (const float value : y) CHECK(std::abs(value / 0.5f - std::round(value / 0.5f)) == 0.0f);
}

TEST_CASE("signed codes of values stay, those of an input move by 128", "[quant][import][onnx]") {
  QuantizedOnnx imported = import_parts(test::onnx_qoperator_image());
  CHECK(quant::Plugged(imported.network).inputs[0]->params() == QParams{{}, -1, {0.5f}, {125}});
  const quant::QuantizedOnnxRow& conv = imported.report.rows[2];
  CHECK(conv.params == QParams{{8, true, false}, -1, {0.5f}, {-3}});
  const Tensor x = test::random_tensor({3, 3, 3, 1}, 1, -4.0f, 4.0f);
  const NoGrad no_grad;
  CHECK(test::values(imported.network(x)) == deployed(converted(imported), x));
}

TEST_CASE("bounds of codes are a ReLU, or bounds of the real values", "[quant][import][onnx]") {
  const auto result = [](int low, int high) {
    test::OnnxParts parts = test::onnx_qdq_gemm();
    parts.initializers.push_back(test::onnx_u8("low", {}, {low}));
    parts.initializers.push_back(test::onnx_u8("high", {}, {high}));
    parts.nodes[3] = test::onnx_node("Clip", {"xd_q", "low", "high"}, {"xd_c"});
    parts.nodes.insert(parts.nodes.begin() + 4,
                       test::onnx_node("DequantizeLinear", {"xd_c", "xd_s", "xd_z"}, {"xd"}));
    QuantizedOnnx imported = import_parts(parts);
    CHECK(imported.report.is_complete());
    return deployed(converted(imported), Tensor::from({1, 3}, std::vector<float>{1, -2, 3}));
  };
  // The codes {12, 6, 16} become {12, 10, 16}: the sums are 0.25 (1 + 9) + 1 = 3.5 and
  // 0.5 (-4 - 381) - 3 = -195.5, which are 1.75 and -97.75 steps of 2.
  CHECK(result(10, 255) == std::vector<float>{4, -196});
  // They become {12, 6, 12}: 0.25 (1 - 4 + 3) + 1 = 1 and 0.5 (-4 - 10 - 127) - 3 = -73.5, 0.5 and
  // -36.75 steps.
  CHECK(result(0, 12) == std::vector<float>{2, -74});
}

TEST_CASE("a sum whose codes have no negative value keeps its ReLU in floats",
          "[quant][import][onnx]") {
  test::OnnxParts parts = test::onnx_qdq_gemm();
  parts.initializers.back() = test::onnx_u8("y_z", {}, {0});
  QuantizedOnnx imported = import_parts(parts);
  const Tensor x = Tensor::from({1, 3}, std::vector<float>{1, -2, 3});
  // The sums are 0.25 (1 - 4 + 9) + 1 = 2.5, 1.25 steps of 2, and -200.5.
  CHECK(deployed(converted(imported), x) == std::vector<float>{2, 0});
  const quant::FloatMode floats(imported.network);
  const NoGrad no_grad;
  CHECK(test::values(imported.network(x)) == std::vector<float>{2.5f, 0});
}

TEST_CASE("codes are padded with a code", "[quant][import][onnx]") {
  test::OnnxParts parts = test::onnx_qoperator_image();
  const Tensor x = test::random_tensor({3, 3, 3, 1}, 1, -4.0f, 4.0f);
  QuantizedOnnx imported = import_parts(parts);
  const std::vector<float> y = deployed(converted(imported), x);
  // The same border of zeros, by a Pad with the zero point before the convolution.
  parts.initializers.push_back(test::onnx_integers("pads", {8}, {0, 0, 1, 1, 0, 0, 1, 1}));
  parts.nodes[1] =
      test::onnx_node("QLinearConv", {"p", "s", "z", "w", "w_s", "w_z", "s", "z", "b"}, {"c"});
  parts.nodes.insert(parts.nodes.begin() + 1, test::onnx_node("Pad", {"x_q", "pads", "z"}, {"p"}));
  QuantizedOnnx padded = import_parts(parts);
  CHECK(deployed(converted(padded), x) == y);
}

TEST_CASE("an input without its lowest code gets a step that lacks it", "[quant][import][onnx]") {
  test::OnnxParts parts = test::onnx_qonnx();
  parts.nodes[0] = test::onnx_node_of("qonnx.custom_op.general",
                                      "Quant",
                                      {"x", "x_s", "zero", "b8"},
                                      {"xq"},
                                      {test::onnx_attribute("narrow", int64_t{1})});
  QuantizedOnnx imported = import_parts(parts);
  REQUIRE(imported.network.steps().size() == 2);
  const std::string step = imported.network.steps()[0].name;
  CHECK(quant::output_quantizer(imported.network, step).params() ==
        QParams{{8, true, true}, -1, {0.5f}, {0}});
  const auto result = [&](float v) {
    return deployed(converted(imported), Tensor::from({1, 3}, std::vector<float>{v, v, v}));
  };
  CHECK(result(-64.0f) == result(-63.5f));  // codes -128 and -127
}

TEST_CASE("QAT goes on from an imported network, and keeps the file's parameters",
          "[quant][import][onnx]") {
  QuantizedOnnx imported = quant::import_quantized_onnx(kQuantizedFolder + "ort_images_qdq.onnx");
  Network& net = imported.network;
  const Tensor x = test::random_tensor({16, 12, 12, 2}, 1, -0.5f, 1.0f);
  std::vector<int32_t> labels;
  for (int32_t i = 0; i < 16; ++i) labels.push_back(i % 5);
  const auto loss_now = [&] { return cross_entropy(net(x), labels).item(); };
  const std::vector<float> before = deployed(converted(imported), x);
  const float first = loss_now();
  net.train();
  Adam optimizer(net.parameters(), {.learning_rate = 0.01f});
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    cross_entropy(net(x), labels).backward();
    optimizer.step();
  }
  net.eval();
  CHECK(loss_now() < first);
  for (const quant::QuantizedOnnxRow& row : imported.report.rows) {
    CAPTURE(row.layer);
    if (row.kind == quant::QuantizedOnnxRow::kActivation)
      CHECK(quant::output_quantizer(net, row.layer).params() == row.params);
    if (row.kind == quant::QuantizedOnnxRow::kWeights)
      CHECK(quant::weight_quantizer(net, row.layer).params() == row.params);
  }
  const std::vector<float> after = deployed(converted(imported), x);
  CHECK(after != before);
  CHECK(after == test::values(net(x)));
}

TEST_CASE("a network that this library exports as QDQ comes back with the same integers",
          "[quant][import][onnx]") {
  manual_seed(4);
  Sequential net{Conv2d{2, 4, {.kernel = 3, .padding = 1}},
                 ReLU{},
                 MaxPool2d{2},
                 Conv2d{4, 4, {.kernel = 3, .groups = 4}},
                 Flatten{},
                 Linear{16, 3}};
  net.eval();
  quant::QConfig config = quant::QConfig::named("w4a8");
  config.input_range = {-1.0f, 1.0f};
  const Tensor x = test::random_tensor({16, 8, 8, 2});
  quant::prepare_ptq(net, x, config);
  quant::calibrate(net, x);
  const IntegerModel model = quant::convert(net, x);
  const test::TemporaryFolder folder;
  export_onnx(model.program(), folder / "net.onnx", {.form = OnnxForm::kQdq});
  QuantizedOnnx imported = quant::import_quantized_onnx(folder / "net.onnx");
  CHECK(imported.report.is_complete());
  const IntegerModel again = converted(imported);
  std::vector<uint8_t> codes(static_cast<size_t>(x.elements()));
  model.quantize_input(test::values(x), codes);
  std::vector<int32_t> expected(16 * 3), integers(16 * 3);
  model.run_codes(codes, std::span<int32_t>(expected));
  again.run_codes(codes, std::span<int32_t>(integers));
  CHECK(integers == expected);
  // Exactly exported, it has operators of integers, and the file holds the program.
  export_onnx(model.program(), folder / "exact.onnx");
  CHECK_THROWS_WITH(quant::import_quantized_onnx(folder / "exact.onnx"),
                    test::ContainsSubstring("load_exported_onnx() makes its integer program"));
}

TEST_CASE("an imported network is kept whole in one file", "[quant][import][onnx]") {
  const test::TemporaryFolder folder;
  for (const char* const name : {"ort_images_int8", "qonnx"}) {
    QuantizedOnnx imported = quant::import_quantized_onnx(kQuantizedFolder + name + ".onnx");
    save_network(imported.network, folder / "net");
    Network loaded = load_network(folder / "net");
    const Tensor example = imported.network.example()[0];
    CHECK(test::values(loaded(example)) == test::values(imported.network(example)));
    CHECK(quant::convert(loaded, loaded.example()).program().steps ==
          converted(imported).program().steps);
  }
}

}  // namespace
}  // namespace quantrain
