#include <algorithm>
#include <map>

#include "framework/core/error.hpp"

#include "layers/onnx/reader.hpp"
#include "quant/export/onnx/export_onnx.hpp"
#include "quant/export/onnx/qdq_differences.hpp"
#include "tests/catch.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/quant/export/onnx_run.hpp"

namespace quantrain::quant::test {
namespace {

/// How often the optimized graph has each operator.
std::map<std::string, int> operators(const std::string& path) {
  std::map<std::string, int> count;
  for (const onnx::Node& node : onnx::read_model(path).graph.nodes) ++count[node.op_type];
  return count;
}

}  // namespace

TEST_CASE("ONNX Runtime fuses QuantizeLinear and DequantizeLinear to integer kernels",
          "[.][onnx_runtime]") {
  if (onnx_runtime() != "onnxruntime-node") return;  // others do not write optimized graphs
  std::map<std::string, int> all;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    RandomNetwork network = random_network(seed);
    INFO(network.description);
    OnnxCases cases;
    const std::string optimized = cases.path("optimized.onnx");
    cases.add(train_and_convert(network, seed).program(),
              1,
              {.form = OnnxForm::kQdq},
              {{"optimized", optimized}, {"optimize", {"all"}}, {"share", 1.0}});
    cases.run();
    for (const auto& [name, count] : operators(optimized)) {
      INFO(name);
      const bool is_float = name == "Conv" || name == "FusedConv" || name == "Gemm" ||
                            name == "MatMul" || name == "QuantizeLinear" ||
                            name == "DequantizeLinear" || name == "AveragePool" ||
                            name == "GlobalAveragePool";
      CHECK(!is_float);
      all[name] += count;
    }
  }
  CHECK(all["QLinearConv"] > 10);
  CHECK(all["QGemm"] > 5);
}

TEST_CASE("each layer gives nearly the engine's codes in ONNX Runtime", "[.][onnx_runtime]") {
  OnnxCases cases;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    RandomNetwork network = random_network(seed);
    const integer::Program program = train_and_convert(network, seed).program();
    for (size_t i = 0; i < program.steps.size(); ++i) {
      if (std::holds_alternative<integer::View>(program.steps[i].operation)) continue;
      // Of a few thousand codes, one may differ.
      const int64_t codes = 200 * program.value(program.steps[i].output).shape.elements();
      const double share = std::max(1e-4, 1.0 / static_cast<double>(codes));
      cases.add(only_step(program, i),
                200,
                {.form = OnnxForm::kQdq},
                {{"share", share}, {"optimize", {"all"}}});
    }
  }
  CHECK(cases.run() == "");
}

TEST_CASE("the share of codes that differ is counted", "[quant][onnx]") {
  const integer::Program program = integer::test::mlp();
  const std::vector<uint8_t> samples = random_samples(program, 300, 1);
  const std::vector<QdqDifference> all = qdq_differences(program, samples);
  REQUIRE(all.size() == 1);  // the second layer gives accumulators
  CHECK(all[0].layer == "0");
  CHECK(all[0].codes == 300 * 9);
  CHECK(all[0].share() <= 1e-3);
  QUANTRAIN_CHECK_ERROR(
      qdq_differences(program, std::span(samples).first(5)), ShapeError, "whole samples of 12");

  // Half of a step is rounded up by the engine, and to even by runtimes.
  integer::test::Builder b;
  const QParams x{{.bits = 8}, -1, {1.0f}, {0}}, y{{.bits = 8}, -1, {2.0f}, {0}};
  const int input = b.input({1}, x);
  integer::QuantizedProduct product;
  product.weight = std::vector<int8_t>{1};
  product.output = integer::requantization({1.0}, y, Activation::kNone);
  b.program.outputs = {
      b.codes("half", integer::QuantizedLinear{1, 1, 1, product}, {input}, {1}, y)};
  const std::vector<QdqDifference> half =
      qdq_differences(b.program, std::vector<uint8_t>{0, 1, 2, 3, 4, 5});
  CHECK(half.at(0).different == 2);  // 1 / 2 and 5 / 2
  CHECK(half.at(0).most == 1);
}

TEST_CASE("an addition whose sums are often ties stays exact", "[quant][onnx]") {
  const auto adds = [](float scale_y) {
    integer::test::Builder b;
    const QParams x{{.bits = 8}, -1, {1.0f}, {0}}, y{{.bits = 8}, -1, {scale_y}, {0}};
    const int input = b.input({4}, x);
    b.program.outputs = {b.codes("sum",
                                 integer::QuantizedAdd::make(4, {x, x}, y, Activation::kNone),
                                 {input, input},
                                 {4},
                                 y)};
    int nodes = 0;
    for (const onnx::Node& node : onnx_model(b.program, {.form = OnnxForm::kQdq}).graph.nodes)
      nodes += node.op_type == "BitShift";
    return nodes;
  };
  CHECK(adds(2.0f) == 1);
  CHECK(adds(2.7182f) == 0);
}

}  // namespace quantrain::quant::test
