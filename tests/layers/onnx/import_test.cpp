#include "layers/onnx/import_onnx.hpp"

#include <algorithm>

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "layers/layers.hpp"
#include "layers/onnx/check_model.hpp"
#include "layers/onnx/importer.hpp"
#include "layers/onnx/reader.hpp"
#include "layers/onnx/recognize.hpp"
#include "tests/catch.hpp"
#include "tests/layers/onnx/onnx_files.hpp"
#include "tests/layers/onnx/onnx_networks.hpp"
#include "tests/layers/onnx/onnx_reference.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

using namespace test;

/// Float sums of a few dozen terms in another order than the reference's doubles.
constexpr double kSumRounding = 2e-6;

struct Written {
  TemporaryFolder folder;
  std::string path = folder / "m.onnx";

  explicit Written(const OnnxParts& parts) {
    const std::vector<uint8_t> bytes = onnx_model(parts);
    write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
};

Network imported(const OnnxParts& parts, const OnnxOptions& options = {}) {
  return import_onnx(Written(parts).path, options);
}

std::vector<std::string> types(const Network& network) {
  std::vector<std::string> all;
  for (const NetworkStep& step : network.steps()) all.emplace_back(step.layer->type());
  return all;
}

/// Places in the file's order for each place of our tensor.
std::vector<int64_t> places_of(onnx::Importer& importer, const onnx::Value& x, int64_t batch) {
  const onnx::Group axes = onnx::flat(x.axes);
  auto places = onnx::permutation(importer.atoms(), axes, onnx::flat(x.storage->axes), batch);
  if (places.empty()) {
    const onnx::Extent extent = importer.atoms().extent(axes);
    for (int64_t i = 0; i < extent.n * batch; ++i) places.push_back(i);
  }
  return places;
}

/// Imports the parts, and compares the network with the reference on a batch.
void check_import(const OnnxParts& parts, int64_t batch = 3) {
  onnx::Model model = onnx::parse_model(onnx_model(parts), "m.onnx");
  onnx::check_model(model);
  std::map<std::string, Array> values;
  for (const onnx::ValueInfo& input : model.graph.inputs) {
    Array x;
    int64_t n = 1;
    for (const onnx::Dimension& dimension : input.dims)
      x.dims.push_back(x.dims.empty() ? batch : dimension.value);
    for (const int64_t extent : x.dims) n *= extent;
    const std::vector<float> numbers = onnx_numbers(n, 5);
    x.v.assign(numbers.begin(), numbers.end());
    values[input.name] = x;
  }
  const std::map<std::string, Array> expected = onnx_reference(model.graph, values);
  model.graph = onnx::recognize(model.graph);
  onnx::Importer importer(model, {});
  importer.run();
  const std::vector<onnx::Value> inputs = importer.network_inputs();
  Network network(std::move(importer.parts()));
  network.eval();
  std::vector<Tensor> x;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<int64_t> shape{batch};
    const std::vector<int64_t>& sample = network.inputs()[i].shape;
    shape.insert(shape.end(), sample.begin(), sample.end());
    std::vector<float> ours;
    for (const int64_t place : places_of(importer, inputs[i], batch))
      ours.push_back(static_cast<float>(values.at(inputs[i].step).v[static_cast<size_t>(place)]));
    x.push_back(Tensor::from(Shape(shape), ours));
  }
  const NoGrad no_grad;
  const std::vector<Tensor> y = network(x);
  REQUIRE(y.size() == model.graph.outputs.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const Array& right = expected.at(model.graph.outputs[i].name);
    const std::vector<int64_t> places = places_of(importer, importer.network_outputs()[i], batch);
    REQUIRE(y[i].elements() == static_cast<int64_t>(right.v.size()));
    const std::vector<float> computed = test::values(y[i]);
    for (size_t k = 0; k < computed.size(); ++k) {
      const double wanted = right.v[static_cast<size_t>(places[k])];
      CHECK(computed[k] == Approx(wanted).margin(kSumRounding).epsilon(kSumRounding));
    }
  }
}

TEST_CASE("imported networks compute what the operators' definitions say", "[layers][onnx]") {
  for (const auto& [name, parts] : onnx_networks()) {
    CAPTURE(name);
    check_import(parts);
  }
}

TEST_CASE("an imported network has PyTorch's names and our layouts", "[layers][onnx]") {
  Network net = imported(onnx_cnn());
  CHECK(types(net) == std::vector<std::string>{"Conv2d", "ReLU", "MaxPool2d", "Reshape", "Linear"});
  std::vector<std::string> names;
  for (const NamedState& parameter : net.named_parameters()) names.push_back(parameter.name);
  CHECK(names == std::vector<std::string>{"conv.weight", "conv.bias", "fc.weight", "fc.bias"});
  CHECK(net.inputs()[0].name == "x");
  CHECK(net.inputs()[0].shape == std::vector<int64_t>{4, 4, 2});
  CHECK_FALSE(net.training());
  for (const NamedState& parameter : net.named_parameters())
    CHECK(parameter.tensor.requires_grad());
}

TEST_CASE("transposes between layouts vanish", "[layers][onnx]") {
  Network net = imported(onnx_transposes());
  CHECK(types(net) == std::vector<std::string>{"ZeroPad2d", "Conv2d", "ReLU6"});
  CHECK(net.inputs()[0].shape == std::vector<int64_t>{4, 4, 2});
  // The addition after the convolution is its bias.
  CHECK(net.find("conv").parameters().size() == 2);
}

TEST_CASE("a shuffle of channels is absorbed by weights, or is a move", "[layers][onnx]") {
  CHECK(types(imported(onnx_shuffle())) == std::vector<std::string>{"Conv2d", "Conv2d", "Conv2d"});
  CHECK(types(imported(onnx_halves())) ==
        std::vector<std::string>{"Conv2d", "take", "Slice", "take", "Slice", "Conv2d", "Concat"});
}

TEST_CASE("functions that are written as several operators become one layer", "[layers][onnx]") {
  CHECK(types(imported(onnx_gelu())) == std::vector<std::string>{"Linear", "GELU", "Linear"});
  // Each way in which exporters write a function: nodes from x to y.
  const auto type_of = [](std::vector<Proto> nodes, std::vector<Proto> numbers) {
    numbers.push_back(onnx_weights("w", {3, 3}, 1));
    nodes.insert(nodes.begin(), onnx_node("MatMul", {"in", "w"}, {"x"}));
    const OnnxParts parts{.nodes = std::move(nodes),
                          .initializers = std::move(numbers),
                          .inputs = {onnx_value("in", {-1, 3})},
                          .outputs = {onnx_value("y", {-1, 3})}};
    return types(imported(parts));
  };
  using Types = std::vector<std::string>;
  const auto number = [](const char* name, float value) { return onnx_floats(name, {}, {value}); };
  CHECK(type_of({onnx_node("Sigmoid", {"x"}, {"s"}), onnx_node("Mul", {"x", "s"}, {"y"})}, {}) ==
        Types{"Linear", "SiLU"});
  CHECK(type_of({onnx_node("Add", {"x", "three"}, {"a"}),
                 onnx_node("Clip", {"a", "zero", "six"}, {"c"}),
                 onnx_node("Mul", {"x", "c"}, {"m"}),
                 onnx_node("Div", {"m", "six"}, {"y"})},
                {number("zero", 0), number("three", 3), number("six", 6)}) ==
        Types{"Linear", "HardSwish"});
  CHECK(type_of({onnx_node("Mul", {"x", "root"}, {"d"}),
                 onnx_node("Erf", {"d"}, {"e"}),
                 onnx_node("Add", {"one", "e"}, {"a"}),
                 onnx_node("Mul", {"x", "half"}, {"h"}),
                 onnx_node("Mul", {"h", "a"}, {"y"})},
                {number("root", 0.70710677f), number("one", 1), number("half", 0.5f)}) ==
        Types{"Linear", "GELU"});
  CHECK(type_of({onnx_node("Pow", {"x", "three"}, {"p"}),
                 onnx_node("Mul", {"p", "c"}, {"q"}),
                 onnx_node("Add", {"x", "q"}, {"a"}),
                 onnx_node("Mul", {"a", "root"}, {"b"}),
                 onnx_node("Tanh", {"b"}, {"t"}),
                 onnx_node("Add", {"t", "one"}, {"u"}),
                 onnx_node("Mul", {"x", "u"}, {"v"}),
                 onnx_node("Mul", {"v", "half"}, {"y"})},
                {number("three", 3),
                 number("c", 0.044715f),
                 number("root", 0.7978846f),
                 number("one", 1),
                 number("half", 0.5f)}) == Types{"Linear", "GELUTanh"});
  CHECK(type_of({onnx_node("Softplus", {"x"}, {"s"}),
                 onnx_node("Tanh", {"s"}, {"t"}),
                 onnx_node("Mul", {"x", "t"}, {"y"})},
                {}) == Types{"Linear", "Mish"});
  // SiLU with a bound far from 0 is not SiLU.
  CHECK(type_of({onnx_node("Sigmoid", {"x"}, {"s"}),
                 onnx_node("Mul", {"x", "s"}, {"m"}),
                 onnx_node("Min", {"m", "ten"}, {"y"})},
                {number("ten", 10)})
            .back() != "SiLU");
  CHECK(type_of({onnx_node("Clip", {"x", "low", "high"}, {"c"}),
                 onnx_node("Sigmoid", {"c"}, {"s"}),
                 onnx_node("Mul", {"c", "s"}, {"y"})},
                {number("low", -10), number("high", 10)})
            .size() > 2);
  // Nearly, but not quite, GELU: the steps stay as they are.
  CHECK(type_of({onnx_node("Mul", {"x", "root"}, {"d"}),
                 onnx_node("Erf", {"d"}, {"e"}),
                 onnx_node("Add", {"one", "e"}, {"a"}),
                 onnx_node("Mul", {"x", "a"}, {"y"})},
                {number("root", 0.70710677f), number("one", 1)}) ==
        Types{"Linear", "mul", "Erf", "add", "Mul"});
}

TEST_CASE("files that ask for endless work or memory are refused", "[layers][onnx]") {
  const auto import_nodes = [](std::vector<Proto> nodes, std::vector<Proto> constants) {
    return imported({.nodes = std::move(nodes),
                     .initializers = std::move(constants),
                     .inputs = {onnx_value("x", {-1, 3})},
                     .outputs = {onnx_value("y", {-1, 3})}});
  };
  std::vector<Proto> chain;
  for (int i = 0; i <= 4096; ++i) {
    chain.push_back(onnx_node("Relu",
                              {i == 0 ? "x" : "v" + std::to_string(i)},
                              {i == 4096 ? "y" : "v" + std::to_string(i + 1)}));
  }
  QUANTRAIN_CHECK_ERROR(import_nodes(chain, {}), DataError, "more than 4096 steps");
  // A convolution of rows.
  QUANTRAIN_CHECK_ERROR(imported({.nodes = {onnx_node("Conv", {"x", "w"}, {"y"})},
                                  .initializers = {onnx_weights("w", {3}, 1)},
                                  .inputs = {onnx_value("x", {-1})},
                                  .outputs = {onnx_value("y", {-1})}}),
                        DataError,
                        "weights of another rank");
  // Constants without elements, but with long axes.
  constexpr int64_t kLong = int64_t{1} << 50;
  const Proto empty = onnx_floats("e", {kLong, 0}, {});
  QUANTRAIN_CHECK_ERROR(
      import_nodes({onnx_node("Concat", {"e", "e"}, {"c"}, {onnx_attribute("axis", int64_t{1})}),
                    onnx_node("Add", {"x", "c"}, {"y"})},
                   {empty}),
      Error,
      "onnx");
  QUANTRAIN_CHECK_ERROR(
      import_nodes({onnx_node("Split", {"e"}, {"c"}, {onnx_attribute("axis", int64_t{0})}),
                    onnx_node("Add", {"x", "c"}, {"y"})},
                   {empty}),
      Error,
      "onnx");
}

TEST_CASE("thousands of nodes that resize long axes are refused", "[layers][onnx]") {
  OnnxParts parts{.nodes = {},
                  .initializers = {onnx_floats("factors", {4}, {1, 1, 32768, 1})},
                  .inputs = {onnx_value("x", {-1, 1, 2, 1})},
                  .outputs = {onnx_value("y", {-1, 1, 65536, 1})}};
  const std::vector<Proto> options{onnx_attribute("coordinate_transformation_mode", "asymmetric"),
                                   onnx_attribute("nearest_mode", "floor")};
  for (int i = 0; i < 40; ++i) {
    const std::string y = "r" + std::to_string(i), sum = "s" + std::to_string(i);
    parts.nodes.push_back(onnx_node("Resize", {"x", "", "factors"}, {y}, options));
    const std::string before = i == 0 ? y : "s" + std::to_string(i - 1);
    parts.nodes.push_back(onnx_node("Add", {before, y}, {i == 39 ? "y" : sum}));
  }
  QUANTRAIN_CHECK_ERROR(imported(parts), DataError, "constants that are too large");
}

TEST_CASE("padding and resizing what mixes the samples of a batch is refused", "[layers][onnx]") {
  for (const bool pads : {true, false}) {
    OnnxParts parts{.nodes = {onnx_node("Reshape", {"x", "shape"}, {"images"})},
                    .initializers = {onnx_integers("shape", {4}, {-1, 3, 8, 8}),
                                     onnx_integers("pads", {8}, {0, 0, 1, 1, 0, 0, 1, 1}),
                                     onnx_floats("factors", {4}, {1, 1, 2, 2})},
                    .inputs = {onnx_value("x", {-1, 2, 3, 8, 8})},
                    .outputs = {onnx_value("y", {-1, 3, pads ? 10 : 16, pads ? 10 : 16})}};
    parts.nodes.push_back(
        pads ? onnx_node("Pad", {"images", "pads"}, {"y"})
             : onnx_node("Resize",
                         {"images", "", "factors"},
                         {"y"},
                         {onnx_attribute("coordinate_transformation_mode", "asymmetric"),
                          onnx_attribute("nearest_mode", "floor")}));
    QUANTRAIN_CHECK_ERROR(imported(parts), DataError, "mixes the samples of a batch");
  }
}

TEST_CASE("batch extents of any kind mean the same", "[layers][onnx]") {
  for (const int64_t batch : {int64_t{-1}, int64_t{1}, int64_t{0}, int64_t{8}}) {
    CAPTURE(batch);
    OnnxParts parts = onnx_flatten();
    parts.inputs = {onnx_value("x", {batch, 2, 3, 4})};
    parts.nodes[0] = onnx_node("Reshape", {"x", "shape"}, {"f"});
    // Files for a fixed number of samples name it; the network takes any number.
    const int64_t samples = std::max<int64_t>(batch, 1);
    parts.initializers.push_back(onnx_integers("shape", {2}, {samples, 24}));
    check_import(parts, samples);
    CHECK(imported(parts)(Tensor::zeros({5, 3, 4, 2})).shape() == Shape{5, 3});
    parts.initializers.back() = onnx_integers("shape", {2}, {samples, -1});
    check_import(parts, samples);
    CHECK(imported(parts)(Tensor::zeros({5, 3, 4, 2})).shape() == Shape{5, 3});
    parts.initializers.back() = onnx_integers("shape", {2}, {0, -1});
    check_import(parts);
    parts.initializers.back() = onnx_integers("shape", {2}, {-1, 24});
    check_import(parts);
  }
}

TEST_CASE("everything that has no layer is listed at once", "[layers][onnx]") {
  OnnxParts parts{
      .nodes = {onnx_node("LSTM", {"x"}, {"a"}, {}, "lstm1"),
                onnx_node("LSTM", {"a"}, {"b"}, {}, "lstm2"),
                onnx_node("If", {"x"}, {"c"}),
                onnx_node(
                    "Resize", {"x", "", "scales"}, {"r"}, {onnx_attribute("mode", "linear")}, "up"),
                onnx_node("Concat", {"b", "c", "r"}, {"y"}, {onnx_attribute("axis", int64_t{1})})},
      .initializers = {onnx_floats("scales", {4}, {1, 1, 2, 2})},
      .inputs = {onnx_value("x", {-1, 2, 4, 4})},
      .outputs = {onnx_value("y", {-1, 2, 4, 4})}};
  QUANTRAIN_CHECK_ERROR(
      imported(parts), DataError, "m.onnx: uses what quantrain has no layer for:");
  QUANTRAIN_CHECK_ERROR(imported(parts), DataError, "\n  LSTM: 2 uses, lstm1, lstm2");
  QUANTRAIN_CHECK_ERROR(imported(parts), DataError, "\n  If: 1 use, If at c");
  QUANTRAIN_CHECK_ERROR(imported(parts), DataError, "\n  Resize (mode linear): 1 use, up");
  parts.nodes = {onnx_node("Transpose", {"x"}, {"t"}, {onnx_attribute("perm", Ints{1, 0, 2, 3})}),
                 onnx_node("Conv", {"t", "w"}, {"y"})};
  parts.initializers = {onnx_weights("w", {1, 2, 1, 1}, 1)};
  QUANTRAIN_CHECK_ERROR(
      imported(parts), DataError, "\n  Conv (works across the samples of a batch)");
}

TEST_CASE("outputs that nobody computes, and constants as outputs, are refused", "[layers][onnx]") {
  OnnxParts parts = onnx_gemm();
  parts.nodes[1] = onnx_node("Relu", {"h"}, {"z", "y"});
  QUANTRAIN_CHECK_ERROR(imported(parts), DataError, "Relu (its output 1): 1 use");
  parts.nodes[1] =
      onnx_node("MaxPool", {"h"}, {"z", "y"}, {onnx_attribute("kernel_shape", Ints{1})});
  QUANTRAIN_CHECK_ERROR(imported(parts), DataError, "MaxPool (with the output Indices): 1 use");
  parts.nodes[1] = onnx_node("Shape", {"h"}, {"y"});
  QUANTRAIN_CHECK_ERROR(imported(parts), DataError, "the output \"y\" is a constant");
  parts.nodes[1] = onnx_node("Relu", {"b"}, {"y"});
  QUANTRAIN_CHECK_ERROR(imported(parts), DataError, "Relu (of constants, which is not computed)");
  parts.inputs = {onnx_value("x", {})};
  QUANTRAIN_CHECK_ERROR(imported(parts), DataError, "is a single number");
}

TEST_CASE("names become paths of their own", "[layers][onnx]") {
  // Dots make groups; a step cannot be a group, and no two things share a name.
  const OnnxParts parts{.nodes = {onnx_node("MatMul", {"x.1", "a.b.weight"}, {"h"}),
                                  onnx_node("MatMul", {"h", "a.weight"}, {"i"}),
                                  onnx_node("MatMul", {"i", "a.b.weight"}, {"j"}),
                                  onnx_node("Neg", {"j"}, {"k"}, {}, "/a/b/"),
                                  onnx_node("Neg", {"k"}, {"l"}, {}, "/a/b/"),
                                  onnx_node("Add", {"l", ".weight"}, {"y"}, {}, "x.1")},
                        .initializers = {onnx_weights("a.b.weight", {3, 3}, 1),
                                         onnx_weights("a.weight", {3, 3}, 2),
                                         onnx_weights(".weight", {3}, 3)},
                        .inputs = {onnx_value("x.1", {-1, 3})},
                        .outputs = {onnx_value("y", {-1, 3})}};
  const Network net = imported(parts);
  std::vector<std::string> names{net.inputs()[0].name};
  for (const NetworkStep& step : net.steps()) names.push_back(step.name);
  for (const NetworkTensor& tensor : net.tensors()) names.push_back(tensor.name);
  CHECK(names ==
        std::vector<std::string>{
            "x.1", "a.b", "a_2", "a_b", "a_b_", "a_b__2", "x_1", "number", "number_2", "_weight"});
}

TEST_CASE("a file in which many nodes read one large constant is refused", "[layers][onnx]") {
  OnnxParts parts;
  parts.initializers = {onnx_weights("c", {1 << 18}, 1)};
  parts.inputs = {onnx_value("x", {-1, 1 << 18})};
  std::string last = "x";
  for (int i = 0; i < 60; ++i) {
    const std::string next = "y" + std::to_string(i);
    parts.nodes.push_back(onnx_node("Add", {last, "c"}, {next}));
    last = next;
  }
  parts.outputs = {onnx_value(last, {-1, 1 << 18})};
  QUANTRAIN_CHECK_ERROR(
      imported(parts), DataError, "constants that are too large, or read too often");
}

TEST_CASE("zeros that are joined to a value are padding", "[layers][onnx]") {
  const OnnxParts parts{
      .nodes = {onnx_node("Concat", {"x", "zeros"}, {"c"}, {onnx_attribute("axis", int64_t{1})}),
                onnx_node("Conv", {"c", "w"}, {"y"})},
      .initializers = {onnx_floats("zeros", {1, 1, 2, 2}, {0, 0, 0, 0}),
                       onnx_weights("w", {2, 3, 1, 1}, 3)},
      .inputs = {onnx_value("x", {1, 2, 2, 2})},
      .outputs = {onnx_value("y", {1, 2, 2, 2})}};
  check_import(parts, 1);
  CHECK(types(imported(parts)) == std::vector<std::string>{"pad", "Conv2d"});
}

TEST_CASE("other values can be the outputs", "[layers][onnx]") {
  OnnxParts parts = onnx_gemm();
  parts.nodes.push_back(onnx_node("ArgMax", {"y"}, {"label"}));
  parts.outputs = {onnx_value("label", {-1, 1}), onnx_value("y", {-1, 2})};
  QUANTRAIN_CHECK_ERROR(imported(parts), DataError, "ArgMax: 1 use");
  CHECK(types(imported(parts, {.outputs = {"y"}})) == std::vector<std::string>{"Linear", "ReLU"});
  CHECK(types(imported(parts, {.outputs = {"h"}})) == std::vector<std::string>{"Linear"});
  QUANTRAIN_CHECK_ERROR(
      imported(parts, {.outputs = {"z"}}), DataError, "nothing makes the output \"z\"");
}

TEST_CASE("shapes that the file leaves open can be given", "[layers][onnx]") {
  OnnxParts parts = onnx_cnn();
  parts.inputs = {onnx_value("x", {-1, 2, -1, -1})};
  QUANTRAIN_CHECK_ERROR(imported(parts), DataError, "give it in OnnxOptions::shapes");
  CHECK(imported(parts, {.shapes = {{"x", {1, 2, 4, 4}}}}).inputs()[0].shape ==
        std::vector<int64_t>{4, 4, 2});
  QUANTRAIN_CHECK_ERROR(
      imported(onnx_cnn(), {.shapes = {{"z", {1}}}}), DataError, "\"z\", which is no input");
}

TEST_CASE("constants that would take much memory are refused", "[layers][onnx]") {
  const auto refused = [](const Proto& node, const Proto& tensor) {
    const OnnxParts parts{.nodes = {node, onnx_node("Add", {"x", "c"}, {"y"})},
                          .initializers = {tensor, onnx_integers("one", {}, {1})},
                          .inputs = {onnx_value("x", {-1, 3})},
                          .outputs = {onnx_value("y", {-1, 3})}};
    QUANTRAIN_CHECK_ERROR(imported(parts), DataError, "constants that are too large");
  };
  refused(onnx_node("ConstantOfShape", {"n"}, {"c"}), onnx_integers("n", {2}, {1 << 20, 1 << 20}));
  refused(onnx_node("Range", {"one", "n", "one"}, {"c"}),
          onnx_integers("n", {}, {int64_t{1} << 40}));
  // What the caller allows is computed.
  const OnnxParts parts{
      .nodes = {onnx_node("ConstantOfShape", {"n"}, {"c"}), onnx_node("Add", {"x", "c"}, {"y"})},
      .initializers = {onnx_integers("n", {2}, {1, 1 << 21})},
      .inputs = {onnx_value("x", {-1, 1 << 21})},
      .outputs = {onnx_value("y", {-1, 1 << 21})}};
  QUANTRAIN_CHECK_ERROR(imported(parts), DataError, "constants that are too large");
  CHECK(imported(parts, {.described_constants = 1 << 24}).steps().size() == 1);
  refused(onnx_node("Expand", {"one", "n"}, {"c"}), onnx_integers("n", {1}, {int64_t{1} << 40}));
}

}  // namespace
}  // namespace quantrain
