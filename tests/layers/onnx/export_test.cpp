#include "layers/onnx/export_onnx.hpp"

#include <algorithm>
#include <cmath>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "layers/layers.hpp"
#include "layers/network/trace.hpp"
#include "layers/onnx/import_onnx.hpp"
#include "layers/onnx/writer.hpp"
#include "tests/catch.hpp"
#include "tests/layers/onnx/exported_networks.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::test {
namespace {

/// The largest difference of two tensors, relative to values above 1.
float difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  float most = 0.0f;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const float x = a.data()[i], y = b.data()[i];
    most = std::max(most, std::abs(x - y) / std::max(1.0f, std::abs(x)));
  }
  return most;
}

}  // namespace

TEST_CASE("an exported network is imported again with the same outputs", "[layers][onnx]") {
  const TemporaryFolder folder;
  for (auto& [name, net, shape] : exported_networks()) {
    INFO(name);
    const Tensor x = noise_for_export(shape);
    net->eval();
    const Tensor y = (*net)(x);
    export_onnx(*net, {x}, folder / "net.onnx");
    Network again = import_onnx(folder / "net.onnx");
    again.eval();
    CHECK(difference(y, again(x)) <= 1e-5f);
  }
}

TEST_CASE("an exported Network keeps its names, classes and metadata", "[layers][onnx]") {
  Network net({.inputs = {{.name = "picture", .shape = {6, 6, 2}}},
               .steps = {{"features.conv",
                          std::make_shared<Conv2d>(2, 3, Conv2d::Options{.kernel = 3}),
                          {"picture"}},
                         {"flat", std::make_shared<Flatten>(), {"features.conv"}},
                         {"fc", std::make_shared<Linear>(48, 2), {"flat"}}},
               .outputs = {"fc"},
               .classes = {"cat", "dog"}});
  net.metadata()["author"] = "a test";
  const onnx::Model model = onnx_model(net);
  CHECK(model.opset() == 13);
  CHECK(model.graph.inputs.at(0).name == "picture");
  CHECK(model.graph.inputs.at(0).dims.at(1).value == 2);  // [N, C, H, W]
  CHECK(model.graph.outputs.at(0).name == "fc");
  CHECK(model.metadata == std::vector<std::pair<std::string, std::string>>{
                              {"author", "a test"}, {"classes", R"(["cat","dog"])"}});
  std::vector<std::string> names;
  for (const onnx::StoredTensor& tensor : model.graph.initializers) names.push_back(tensor.name);
  CHECK(std::count(names.begin(), names.end(), "features.conv.weight") == 1);
  const TemporaryFolder folder;
  onnx::write_model(folder / "net.onnx", model);
  Network again = import_onnx(folder / "net.onnx");
  std::vector<std::string> parameters;
  for (const auto& parameter : again.named_parameters()) parameters.push_back(parameter.name);
  CHECK(std::count(parameters.begin(), parameters.end(), "features.conv.weight") == 1);

  // ONNX forbids two entries of a key.
  net.metadata()["classes"] = "Felis, Canis";
  CHECK(onnx_model(net).metadata == std::vector<std::pair<std::string, std::string>>{
                                        {"author", "a test"}, {"classes", "Felis, Canis"}});
}

TEST_CASE("what has no form in ONNX is listed with its layers", "[layers][onnx]") {
  class Odd : public Module {
   public:
    std::string_view type() const override { return "Odd"; }

   protected:
    Tensor forward(const Tensor& x) override { return sum(x) + transpose(x, {1, 0}); }
  };
  Odd net;
  const Tensor x = Tensor::zeros({1, 1});
  QUANTRAIN_CHECK_ERROR(onnx_model(net, {x}), ExportError, "sum (it mixes the samples of a batch)");
  QUANTRAIN_CHECK_ERROR(onnx_model(net, {x}), ExportError, "transpose");
  const TemporaryFolder folder;
  CHECK_THROWS_AS(export_onnx(net, {x}, folder / "net.onnx"), ExportError);
  CHECK(folder.files() == 0);
}

}  // namespace quantrain::test
