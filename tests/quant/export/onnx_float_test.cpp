#include "layers/onnx/export_onnx.hpp"
#include "tests/catch.hpp"
#include "tests/layers/onnx/exported_networks.hpp"
#include "tests/quant/export/onnx_run.hpp"
#include "tests/quant/networks.hpp"

namespace quantrain::quant::test {
namespace {

std::vector<int64_t> dims_of(const Tensor& tensor) {
  return {tensor.shape().begin(), tensor.shape().end()};
}

void add_float_case(OnnxCases& cases, Module& net, const Tensor& x) {
  net.eval();
  const Tensor y = net(x);
  cases.add<float, float>(onnx_model(net, {x}, {.layout = OnnxLayout::kChannelsLast}),
                          dims_of(x),
                          span_of(x),
                          dims_of(y),
                          span_of(y),
                          {{"by", 1e-5}});
}

}  // namespace

TEST_CASE("ONNX Runtime computes the outputs of an exported network of floats",
          "[.][onnx_runtime]") {
  OnnxCases cases;
  for (auto& [name, net, shape] : quantrain::test::exported_networks())
    add_float_case(cases, *net, quantrain::test::noise_for_export(shape));
  for (uint64_t seed = 0; seed < 30; ++seed) {
    RandomNetwork network = random_network(seed);
    if (network.inputs.size() > 1) continue;
    const Shape& image = network.inputs[0];
    add_float_case(cases, *network.net, random_images({3, image[0], image[1], image[2]}, seed));
  }
  CHECK(cases.run() == "");
}

}  // namespace quantrain::quant::test
