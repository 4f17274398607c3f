#include <algorithm>
#include <sstream>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "layers/layers.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"

// Sums of any number of tensors.
namespace quantrain::quant::test {
namespace {

/// y = relu(branch_1(x) + branch_2(x) + ... + x): as one sum, or as a chain of sums of two.
class Residual : public Module {
 public:
  Residual(int64_t channels, size_t branches, bool chain = false) : chain_(chain) {
    for (size_t i = 0; i < branches; ++i) {
      const int64_t kernel = i % 2 == 0 ? 3 : 1;
      branches_.push_back(
          add("branch" + std::to_string(i),
              Sequential{Conv2d{channels, channels, {.kernel = kernel, .padding = kernel / 2}},
                         BatchNorm2d{channels}}));
    }
    for (size_t i = 0; i < (chain ? branches : 1); ++i)
      sums_.push_back(add("sum" + std::to_string(i), Add{}));
    relu_ = add("relu", ReLU{});
  }
  std::string_view type() const override { return "Residual"; }

 protected:
  Tensor forward(const Tensor& x) override {
    std::vector<Tensor> terms;
    for (const auto& branch : branches_) terms.push_back((*branch)(x));
    terms.push_back(x);
    if (!chain_) return (*relu_)((*sums_[0])(terms)[0]);
    Tensor sum = terms[0];
    for (size_t i = 0; i < sums_.size(); ++i) sum = (*sums_[i])(sum, terms[i + 1]);
    return (*relu_)(sum);
  }

 private:
  bool chain_;
  std::vector<std::shared_ptr<Sequential>> branches_;
  std::vector<std::shared_ptr<Add>> sums_;
  std::shared_ptr<ReLU> relu_;
};

Sequential residual_net(size_t branches, bool chain = false) {
  manual_seed(5);
  return Sequential{Conv2d{1, 4, {.padding = 1}},
                    ReLU{},
                    Residual{4, branches, chain},
                    GlobalAvgPool2d{},
                    Flatten{},
                    Linear{4, 4}};
}

/// The number of operands of each addition of a program.
std::vector<size_t> operands(const integer::Program& program) {
  std::vector<size_t> counts;
  for (const integer::Step& step : program.steps) {
    const auto* const sum = std::get_if<integer::QuantizedAdd>(&step.operation);
    if (sum == nullptr) continue;
    CHECK(sum->operands.size() == step.inputs.size());
    counts.push_back(step.inputs.size());
  }
  return counts;
}

/// A layer that computes x + x + 0.5. If `at_once`, it calls the function add(), and the constant
/// is one number. Otherwise it runs the layer Add, and the constant has x's shape.
class WithConstant : public Module {
 public:
  explicit WithConstant(bool at_once) : sum_(add("sum", Add{})), at_once_(at_once) {}
  std::string_view type() const override { return "WithConstant"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor c = Tensor::full(x.shape(), 0.5f);
    if (at_once_) return quantrain::add({x, x, Tensor::full({1}, 0.5f)});
    return (*sum_)(std::vector<Tensor>{x, x, c})[0];
  }

 private:
  std::shared_ptr<Add> sum_;
  bool at_once_;
};

}  // namespace

TEST_CASE("a residual network of several branches converts to one addition", "[quant][add]") {
  const int bits = GENERATE(8, 4, 2);
  const bool is_signed = GENERATE(false, true);
  const size_t branches = GENERATE(2u, 7u);
  CAPTURE(bits, is_signed, branches);
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = residual_net(branches);
  QConfig config = QConfig::bits(bits, bits);
  config.model.activation.is_signed = is_signed;
  prepare_qat(net, example, config);
  train_a_little(net, {6, 8, 8, 1}, 3);
  CHECK(plan(net, example).convertible());
  const IntegerModel model = convert(net, example);
  CHECK(operands(model.program()) == std::vector<size_t>{branches + 1});
  check_on_every_isa(net, model, example, random_images({40, 8, 8, 1}, 9));
  const quantrain::test::TemporaryFolder folder;
  model.save(folder / "model");
  const IntegerModel loaded = IntegerModel::load(folder / "model");
  CHECK(loaded.program() == model.program());
  CHECK(loaded.hash() == model.hash());
}

TEST_CASE("a chain of sums of two stays a chain of as many steps", "[quant][add]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  const auto converted = [&](bool chain) {
    Sequential net = residual_net(3, chain);
    prepare_qat(net, example, QConfig::int8());
    train_a_little(net, {6, 8, 8, 1}, 3);
    return convert(net, example);
  };
  const IntegerModel one = converted(false);
  const IntegerModel chain = converted(true);
  CHECK(operands(one.program()) == std::vector<size_t>{4});
  CHECK(operands(chain.program()) == std::vector<size_t>{2, 2, 2});
  CHECK(one.program().steps.size() + 2 == chain.program().steps.size());
}

TEST_CASE("after calibration, the integer sum of three equals the simulation", "[quant][add]") {
  const Tensor images = random_images({20, 8, 8, 1}, 1);
  Sequential net = residual_net(2);
  prepare_ptq(net, images, QConfig::int8());
  calibrate(net, images);
  const IntegerModel model = convert(net, images);
  CHECK(operands(model.program()) == std::vector<size_t>{3});
  check_parity(net, model, random_images({40, 8, 8, 1}, 9));
}

TEST_CASE("a sum of one tensor is that tensor", "[quant][add]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = residual_net(0);
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 8, 8, 1}, 3);
  const IntegerModel model = convert(net, example);
  CHECK(operands(model.program()).empty());
  check_parity(net, model, random_images({40, 8, 8, 1}, 9));
}

TEST_CASE("the error about a constant among three operands says what to write", "[quant][add]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  const auto prepared = [&](bool at_once) {
    Sequential net{Conv2d{1, 4, {.padding = 1}}, WithConstant{at_once}, Flatten{}, Linear{256, 4}};
    prepare_qat(net, example, QConfig::int8());
    train_a_little(net, {6, 8, 8, 1}, 2);
    return convert(net, example);
  };
  QUANTRAIN_CHECK_ERROR(
      prepared(true),
      GraphError,
      "this addition that broadcasts has no integer form: [2, 8, 8, 4] + "
      "[2, 8, 8, 4] + [1]; add the constant to one operand first, in a "
      "separate layer; a constant operand must be one number, or one for each channel");
  QUANTRAIN_CHECK_ERROR(
      prepared(false),
      GraphError,
      "[1.sum] this addition of a constant has no integer form: [2, 8, 8, 4] + "
      "[2, 8, 8, 4] + [2, 8, 8, 4]; add the constant to one operand first, in a separate layer");
}

TEST_CASE("the error about a sum of three outside of a layer suggests the layer Add",
          "[quant][add]") {
  class Alone : public Module {
   public:
    std::string_view type() const override { return "Alone"; }

   protected:
    Tensor forward(const Tensor& x) override { return quantrain::add({x, relu(x), x}); }
  };
  Sequential net{Alone{}, Flatten{}, Linear{64, 4}};
  QUANTRAIN_CHECK_ERROR(prepare_qat(net, random_images({2, 8, 8, 1}, 1), QConfig::int8()),
                        GraphError,
                        "has no place for a FakeQuantize: use the layer Add");
}

}  // namespace quantrain::quant::test
