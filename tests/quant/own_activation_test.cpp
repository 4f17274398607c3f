// An activation and a lowering rule defined outside of the library. The activation is the example
// of docs/adding_an_operation.md.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/elementwise.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace own {

using namespace quantrain;

// [softsign]
Tensor softsign(const Tensor& x) {
  static const auto function = std::make_shared<const ElementwiseFunction>(ElementwiseFunction{
      .type = "softsign",
      .f = [](double v) { return v / (1.0 + std::abs(v)); },
      .derivative = [](double v) { return 1.0 / ((1.0 + std::abs(v)) * (1.0 + std::abs(v))); }});
  return elementwise(function, x);
}
// [softsign]

class Softsign : public Module {
 public:
  std::string_view type() const override { return "Softsign"; }

 protected:
  Tensor forward(const Tensor& x) override { return softsign(x); }
};

/// y = -x. It maps the lowest code to the highest, the second lowest to the second highest, and so
/// on, so nothing is rounded.
class MirrorNode : public Node {
 public:
  explicit MirrorNode(std::string type) : type_(std::move(type)) {}
  std::string_view type() const override { return type_; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    Tensor grad_x = Tensor::empty(grad_y.shape());
    for (int64_t i = 0; i < grad_x.elements(); ++i) grad_x.mutable_data()[i] = -grad_y.floats()[i];
    return {grad_x};
  }

 private:
  std::string type_;
};

QParams mirrored(QParams params) {
  params.zero_point[0] = params.type.qmax() + params.type.qmin() - params.zero_point[0];
  return params;
}

uint8_t mirrored(int32_t stored, const QType& type) {
  return static_cast<uint8_t>(2 * stored_offset(type) + type.qmax() + type.qmin() - stored);
}

/// The result's codes have no integer operation (Codes::operation), so lowering needs a rule for
/// `type`.
Tensor mirror(const Tensor& x, const std::string& type) {
  if (const auto codes = activation_codes(x)) {
    auto result = std::make_shared<Codes>();
    result->params = mirrored(codes->params);
    result->bytes = Buffer<uint8_t>(x.elements());
    for (int64_t i = 0; i < x.elements(); ++i)
      result->bytes[i] = mirrored(codes->u8()[i], codes->params.type);
    return record<MirrorNode>(Tensor::from_codes(x.shape(), std::move(result)), {x}, type);
  }
  Tensor y = Tensor::empty(x.shape());
  for (int64_t i = 0; i < x.elements(); ++i) y.mutable_data()[i] = -x.floats()[i];
  return record<MirrorNode>(y, {x}, type);
}

class MirrorLayer : public Module {
 public:
  explicit MirrorLayer(std::string node = "mirror") : node_(std::move(node)) {}
  std::string_view type() const override { return "MirrorLayer"; }

 protected:
  Tensor forward(const Tensor& x) override { return mirror(x, node_); }

 private:
  std::string node_;
};

/// y = 2 x, always in floats.
class Twice : public Module {
 public:
  std::string_view type() const override { return "Twice"; }

 protected:
  Tensor forward(const Tensor& x) override {
    class TwiceNode : public Node {
     public:
      std::string_view type() const override { return "twice"; }
      std::vector<Tensor> backward(Tensor grad_y) override { return {grad_y}; }
    };
    Tensor y = Tensor::empty(x.shape());
    for (int64_t i = 0; i < x.elements(); ++i) y.mutable_data()[i] = 2 * x.floats()[i];
    return record<TwiceNode>(y, {x});
  }
};

}  // namespace own

namespace quantrain::quant {
namespace {

using quantrain::test::values;
using test::check_parity;
using test::random_images;
using test::train_a_little;

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("docs/adding_an_operation.md shows the activation that is compiled here",
          "[quant][own]") {
  const auto root = std::filesystem::path(QUANTRAIN_TEST_DATA).parent_path().parent_path();
  const std::string source = read(root / "tests/quant/own_activation_test.cpp");
  const std::string mark = "// [softsign]\n";
  const size_t first = source.find(mark) + mark.size();
  const std::string code = source.substr(first, source.find(mark, first) - first);
  CHECK(code.size() > 100);
  CHECK(read(root / "docs/adding_an_operation.md").find("```cpp\n" + code + "```\n") !=
        std::string::npos);
}

TEST_CASE("softsign equals x / (1 + |x|), and its gradient matches finite differences",
          "[quant][own]") {
  const Tensor x = quantrain::test::make_leaf({2, 3}, {-3.0f, -1.0f, -0.25f, 0.5f, 1.0f, 9.0f});
  const std::vector<float> y = values(own::softsign(x));
  CHECK(y == std::vector<float>{-0.75f, -0.5f, -0.2f, static_cast<float>(0.5 / 1.5), 0.5f, 0.9f});
  quantrain::test::check_gradient([&] { return own::softsign(x); }, {x});
  CHECK(own::softsign(Tensor::zeros({0, 2})).elements() == 0);
}

TEST_CASE("a user-defined activation trains, converts and equals its simulation", "[quant][own]") {
  const int bits = GENERATE(8, 4, 2);
  const bool is_signed = GENERATE(false, true);
  CAPTURE(bits, is_signed);
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net{Conv2d{1, 4, {.kernel = 3, .padding = 1}},
                 BatchNorm2d{4},
                 own::Softsign{},
                 MaxPool2d{2},
                 Conv2d{4, 5, {.kernel = 3}},
                 own::Softsign{},
                 ReLU{},
                 Flatten{},
                 Linear{20, 4}};
  QConfig config = QConfig::bits(bits, bits);
  config.types["Softsign"] = QConfig::bits(8, bits).model;
  config.types["Softsign"].activation.is_signed = is_signed;
  prepare_qat(net, example, config);
  const std::vector<float> before = values(net.parameters()[0]);
  train_a_little(net, {6, 8, 8, 1}, 4);
  CHECK(values(net.parameters()[0]) != before);

  const IntegerModel model = convert(net, example);
  const Tensor images = random_images({70, 8, 8, 1}, 9);
  check_parity(net, model, images);
  const Plan rows = plan(net, example);
  CHECK(rows.convertible());
  REQUIRE(rows.rows.size() == 7);
  CHECK(rows.rows[1].name == "2");
  CHECK(rows.rows[1].operation == "softsign");
  CHECK(rows.rows[1].kernel == "lookup_u8");
  CHECK(rows.rows[1].output_bits == bits);
  CHECK(rows.rows[4].name == "5");
  CHECK(rows.rows[4].folded == "6");  // its ReLU
  std::ostringstream text;
  text << rows;
  CHECK_THAT(text.str(), quantrain::test::ContainsSubstring("softsign"));

  // The saved model does not need the activation's C++ function.
  const quantrain::test::TemporaryFolder folder;
  model.save(folder / "model");
  const IntegerModel loaded = IntegerModel::load(folder / "model");
  CHECK(loaded.program() == model.program());
  CHECK(loaded.hash() == model.hash());
  check_parity(net, loaded, images);
}

TEST_CASE("codes without an integer operation are lowered by a rule", "[quant][own]") {
  const Tensor example = random_images({2, 12}, 1);
  const bool is_signed = GENERATE(false, true);
  QConfig config = QConfig::bits(8, 6);
  config.model.activation.is_signed = is_signed;
  const auto prepared = [&] {
    auto net =
        std::make_unique<Sequential>(Linear{12, 9}, ReLU{}, own::MirrorLayer{}, Linear{9, 4});
    prepare_qat(*net, example, config);
    train_a_little(*net, {6, 12}, 3);
    return net;
  };
  // Set in the first of the two GENERATE runs. A registered rule stays for the second run.
  static bool registered = false;
  if (!registered) {
    const auto net = prepared();
    QUANTRAIN_CHECK_ERROR(
        convert(*net, example), GraphError, "[2] operation mirror has no integer form");
    const Plan rows = plan(*net, example);
    CHECK_FALSE(rows.convertible());
    CHECK(rows.rows[1].operation == "mirror");
  }
  register_lowering("mirror", [](LoweringContext& context, const GraphNode& node) {
    CHECK(context.is_data(node, 0));
    CHECK(LoweringContext::name_of(node) == "2");
    const QType& type = node.output.codes()->params.type;
    integer::QuantizedLookup lookup{.size = node.output.elements() / node.output.dim(0)};
    for (const int32_t q : integer::stored_codes(node.output.codes()->params))
      lookup.table[static_cast<size_t>(q)] = own::mirrored(q, type);
    context.emit(node, lookup, {context.codes(node, 0)});
  });
  registered = true;
  const auto net = prepared();
  const IntegerModel model = convert(*net, example);
  check_parity(*net, model, random_images({300, 12}, 9));
  const Plan rows = plan(*net, example);
  CHECK(rows.convertible());
  REQUIRE(rows.rows.size() == 3);
  CHECK(rows.rows[1].name == "2");
  CHECK(rows.rows[1].operation == "mirror");
  CHECK(rows.rows[1].kernel == "lookup_u8");
  CHECK(rows.rows[1].output_bits == 6);
}

TEST_CASE("a rule that cannot lower its node is an error that names the layer", "[quant][own]") {
  const Tensor example = random_images({2, 12}, 1);
  Sequential net{Linear{12, 9}, own::Twice{}, Flatten{}, Linear{9, 4}};
  prepare_qat(net, example, QConfig::int8());
  net(example);
  QUANTRAIN_CHECK_ERROR(
      convert(net, example), GraphError, "[1] operation twice has no integer form");
  const auto with = [&](const LoweringRule& rule) {
    register_lowering("twice", rule);
    return plan(net, example);
  };
  // A rule cannot emit codes for a float result.
  const Plan floats = with([](LoweringContext& context, const GraphNode& node) {
    const integer::QuantizedLookup lookup{.size = 9};
    context.emit(node, lookup, {context.codes(node, 0)});
  });
  CHECK_FALSE(floats.convertible());
  CHECK(floats.rows[1].reason ==
        "[1] operation twice does not output codes, so a rule cannot emit it");
  QUANTRAIN_CHECK_ERROR(
      convert(net, example), GraphError, "does not output codes, so a rule cannot emit it");
  const Plan thrown = with([](LoweringContext& context, const GraphNode& node) {
    throw QuantError(context.name_of(node), "is too much");
  });
  CHECK(thrown.rows[1].reason == "[1] is too much");
  QUANTRAIN_CHECK_ERROR(convert(net, example), QuantError, "[1] is too much");
  // The rule emits nothing. The layer that reads the missing result reports the error.
  with([](LoweringContext&, const GraphNode&) {});
  QUANTRAIN_CHECK_ERROR(
      convert(net, example), GraphError, "reads the output of 1, which has no integer form");
}

TEST_CASE("a rule cannot emit a result that has no range yet, nor an invalid operation",
          "[quant][own]") {
  const auto halve = std::make_shared<const ElementwiseFunction>(
      ElementwiseFunction{.type = "halve",
                          .f = [](double v) { return v / 2.0; },
                          .derivative = [](double) { return 0.5; }});
  class Halve : public Module {
   public:
    explicit Halve(std::shared_ptr<const ElementwiseFunction> f) : f_(std::move(f)) {}
    std::string_view type() const override { return "Halve"; }

   protected:
    Tensor forward(const Tensor& x) override { return elementwise(f_, x); }

   private:
    std::shared_ptr<const ElementwiseFunction> f_;
  };
  const Tensor example = random_images({2, 12}, 1);
  Sequential net{Linear{12, 9}, Halve{halve}, own::MirrorLayer{"senseless"}, Linear{9, 4}};
  prepare_qat(net, example, QConfig::int8());
  net(example);
  const auto emit_lookup = [](int64_t size) {
    return [size](LoweringContext& context, const GraphNode& node) {
      const integer::QuantizedLookup lookup{.size = size};
      context.emit(node, lookup, {context.codes(node, 0)});
    };
  };
  register_lowering("senseless", emit_lookup(0));
  QUANTRAIN_CHECK_ERROR(convert(net, example), ShapeError, "[2] extent 0 is not positive");
  register_lowering("senseless", emit_lookup(8));
  QUANTRAIN_CHECK_ERROR(
      convert(net, example), GraphError, "[2] input 0 has shape [9], expected 8 elements");
  register_lowering("halve", emit_lookup(9));
  QUANTRAIN_CHECK_ERROR(convert(net, example),
                        GraphError,
                        "[1] operation halve does not output codes, so a rule cannot emit it");
}

}  // namespace quantrain::quant
