// An activation and operations on codes, defined outside of the library. The activation and the sum
// are examples of docs/adding_an_operation.md.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/elementwise.hpp"
#include "framework/autograd/ops/operators.hpp"
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

// [sum]
/// a + b of codes, sample by sample. It is rounded once, when the result's parameters are known.
class CodeSum : public WaitingResult {
 public:
  CodeSum(int64_t samples, std::shared_ptr<const Codes> a, std::shared_ptr<const Codes> b)
      : samples_(samples), a_(std::move(a)), b_(std::move(b)) {}

  void to_float(float* y) const override {
    const auto real = [](const Codes& x, int64_t i) {
      return dequantize(x.u8()[i], x.params.scale[0], x.stored_zero_point());
    };
    for (int64_t i = 0; i < a_->bytes.size(); ++i) y[i] = real(*a_, i) + real(*b_, i);
  }

  std::shared_ptr<const integer::Operation> requantize(const QParams& y,
                                                       Activation activation,
                                                       uint8_t* codes,
                                                       uint8_t* mask) const override {
    const auto add = integer::QuantizedAdd::make(
        a_->bytes.size() / samples_, {a_->params, b_->params}, y, activation);
    const uint8_t* const inputs[] = {a_->u8(), b_->u8()};
    integer::Prepared(add).run(samples_, inputs, codes, gradient_mask(y, mask));
    return std::make_shared<const integer::Operation>(add);
  }

 private:
  int64_t samples_;
  std::shared_ptr<const Codes> a_;
  std::shared_ptr<const Codes> b_;
};

class SumNode : public Node {
 public:
  std::string_view type() const override { return "own_sum"; }
  QuantizationTraits traits() const override { return {.closes_range = true}; }
  std::vector<Tensor> backward(Tensor grad_y) override { return {grad_y, grad_y}; }
};

Tensor sum(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape()))
    throw ShapeError("own_sum", "shapes differ: a ", a.shape(), ", b ", b.shape());
  const auto a_codes = activation_codes(a);
  const auto b_codes = activation_codes(b);
  if (a_codes != nullptr && b_codes != nullptr && a.elements() > 0) {
    auto waiting = std::make_shared<CodeSum>(a.dim(0), a_codes, b_codes);
    return record<SumNode>(TensorAccess::from_waiting(a.shape(), std::move(waiting)), {a, b});
  }
  Tensor y = Tensor::empty(a.shape());
  const Floats a_floats = a.floats();
  const Floats b_floats = b.floats();
  for (int64_t i = 0; i < y.elements(); ++i) y.mutable_data()[i] = a_floats[i] + b_floats[i];
  return record<SumNode>(std::move(y), {a, b});
}
// [sum]

class SumLayer : public Module {
 public:
  std::string_view type() const override { return "SumLayer"; }

 protected:
  Tensor forward(const Tensor& a, const Tensor& b) override { return own::sum(a, b); }
};

/// relu(first(x) + second(x)), where the addition is the user's.
class Branches : public Module {
 public:
  std::string_view type() const override { return "Branches"; }

 protected:
  Tensor forward(const Tensor& x) override {
    return (*last_)((*relu_)((*sum_)((*first_)(x), (*second_)(x))));
  }

 private:
  std::shared_ptr<Linear> first_ = add("first", Linear{12, 9});
  std::shared_ptr<Linear> second_ = add("second", Linear{12, 9});
  std::shared_ptr<SumLayer> sum_ = add("sum", SumLayer{});
  std::shared_ptr<ReLU> relu_ = add("relu", ReLU{});
  std::shared_ptr<Linear> last_ = add("last", Linear{9, 4});
};

/// y = -x. It maps the lowest code to the highest, the second lowest to the second highest, and so
/// on, so nothing is rounded. Without `attached`, the result's codes name no integer operation.
class MirrorLayer : public Module {
 public:
  explicit MirrorLayer(bool attached) : attached_(attached) {}
  std::string_view type() const override { return "MirrorLayer"; }

 protected:
  Tensor forward(const Tensor& x) override {
    class MirrorNode : public Node {
     public:
      std::string_view type() const override { return "mirror"; }
      std::vector<Tensor> backward(Tensor grad_y) override { return {grad_y * -1.0f}; }
    };
    const auto codes = activation_codes(x);
    if (codes == nullptr) return record<MirrorNode>(x.detach() * -1.0f, {x});
    const QType& type = codes->params.type;
    QParams params = codes->params;
    params.zero_point[0] = type.qmax() + type.qmin() - params.zero_point[0];
    integer::QuantizedLookup lookup{.size = x.elements() / x.dim(0)};
    for (const int32_t q : integer::stored_codes(params)) {
      lookup.table[static_cast<size_t>(q)] =
          static_cast<uint8_t>(2 * stored_offset(type) + type.qmax() + type.qmin() - q);
    }
    Buffer<uint8_t> y(x.elements());
    const uint8_t* const inputs[] = {codes->u8()};
    integer::Prepared(lookup).run(x.dim(0), inputs, y.data());
    auto operation = attached_ ? std::make_shared<const integer::Operation>(lookup) : nullptr;
    return record<MirrorNode>(computed_codes(x.shape(), std::move(y), params, operation), {x});
  }

 private:
  bool attached_;
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

TEST_CASE("docs/adding_an_operation.md shows the operations that are compiled here",
          "[quant][own]") {
  const auto root = std::filesystem::path(QUANTRAIN_TEST_DATA).parent_path().parent_path();
  const std::string source = read(root / "tests/quant/own_activation_test.cpp");
  for (const std::string mark : {"// [softsign]\n", "// [sum]\n"}) {
    const size_t first = source.find(mark) + mark.size();
    const std::string code = source.substr(first, source.find(mark, first) - first);
    CHECK(code.size() > 100);
    CHECK(read(root / "docs/adding_an_operation.md").find("```cpp\n" + code + "```\n") !=
          std::string::npos);
  }
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

TEST_CASE("a user's operation on two operands deploys as the struct that it completes",
          "[quant][own]") {
  const Tensor example = random_images({2, 12}, 1);
  own::Branches net;
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 12}, 3);
  const IntegerModel model = convert(net, example);
  check_parity(net, model, random_images({300, 12}, 9));
  const Plan rows = plan(net, example);
  REQUIRE(rows.rows.size() == 4);
  CHECK(rows.rows[2].name == "sum");
  CHECK(rows.rows[2].operation == "own_sum");
  CHECK(rows.rows[2].kernel == "add_u8");
  CHECK(rows.rows[2].folded == "relu");
  const Tensor a = quantrain::test::random_leaf({2, 3}, 1);
  const Tensor b = quantrain::test::random_leaf({2, 3}, 2);
  quantrain::test::check_gradient([&] { return own::sum(a, b); }, {a, b});
  QUANTRAIN_CHECK_ERROR(
      own::sum(Tensor::zeros({2}), Tensor::zeros({3})), ShapeError, "[own_sum] shapes differ");
}

TEST_CASE("a user's operation on codes deploys as the struct that it attaches", "[quant][own]") {
  const Tensor example = random_images({2, 12}, 1);
  const bool is_signed = GENERATE(false, true);
  QConfig config = QConfig::bits(8, 6);
  config.model.activation.is_signed = is_signed;
  Sequential without{Linear{12, 9}, ReLU{}, own::MirrorLayer{false}, Linear{9, 4}};
  QUANTRAIN_CHECK_ERROR(prepare_qat(without, example, config),
                        GraphError,
                        "[2] operation mirror has no integer form");
  Sequential net{Linear{12, 9}, ReLU{}, own::MirrorLayer{true}, Linear{9, 4}};
  prepare_qat(net, example, config);
  train_a_little(net, {6, 12}, 3);
  check_parity(net, convert(net, example), random_images({300, 12}, 9));
  const Plan rows = plan(net, example);
  CHECK(rows.convertible());
  REQUIRE(rows.rows.size() == 3);
  CHECK(rows.rows[1].name == "2");
  CHECK(rows.rows[1].operation == "mirror");
  CHECK(rows.rows[1].kernel == "lookup_u8");
  CHECK(rows.rows[1].output_bits == 6);
}

TEST_CASE("a user's operation in floats is refused by the name of its layer", "[quant][own]") {
  const Tensor example = random_images({2, 12}, 1);
  Sequential net{Linear{12, 9}, own::Twice{}, Flatten{}, Linear{9, 4}};
  const std::string text = "[1] operation twice has no integer form";
  QUANTRAIN_CHECK_ERROR(prepare_qat(net, example, QConfig::int8()), GraphError, text);
  QConfig config = QConfig::int8();
  config.layers["1"] = config.model;
  config.layers["1"].quantize = false;
  prepare_qat(net, example, config);
  net(example);
  QUANTRAIN_CHECK_ERROR(convert(net, example), GraphError, text);
  const Plan rows = plan(net, example);
  CHECK(rows.rows[1].reason == "[1] operation twice has no integer form");
  CHECK_THAT(
      rows.rows[2].reason,
      quantrain::test::ContainsSubstring("reads the output of 1, which has no integer form"));
}

}  // namespace quantrain::quant
