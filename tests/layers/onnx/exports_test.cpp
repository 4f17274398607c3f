#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/autograd/node.hpp"
#include "layers/onnx/import_onnx.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

/// Of the largest output: PyTorch adds float32 in another order.
constexpr double kOfLargest = 1e-5;

Tensor tensor_in(const nlohmann::json& entry) {
  return Tensor::from(Shape(entry.at("shape").get<std::vector<int64_t>>()),
                      entry.at("values").get<std::vector<float>>());
}

TEST_CASE("imported networks compute what PyTorch, which exported them, computes",
          "[layers][onnx]") {
  const std::string folder = std::string(QUANTRAIN_TEST_DATA) + "/exports/";
  const nlohmann::json networks = nlohmann::json::parse(std::ifstream(folder + "networks.json"));
  REQUIRE(networks.size() == 10);
  const NoGrad no_grad;
  for (const auto& [name, vectors] : networks.items()) {
    CAPTURE(name);
    Network net = import_onnx(folder + name + ".onnx");
    const Tensor y = net(tensor_in(vectors.at("x")));
    const Tensor expected = tensor_in(vectors.at("y"));
    REQUIRE(y.shape() == expected.shape());
    const std::vector<float> values = test::values(y), right = test::values(expected);
    float largest = 0.0f;
    for (const float v : right) largest = std::max(largest, std::abs(v));
    for (size_t i = 0; i < values.size(); ++i)
      CHECK(values[i] == test::Approx(right[i]).margin(kOfLargest * largest).epsilon(0));
  }
}

}  // namespace
}  // namespace quantrain
