#include <cmath>
#include <sstream>

#include "framework/autograd/ops.hpp"
#include "framework/optim/adam.hpp"
#include "quant/analysis/ranges.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/tensors.hpp"

// Outputs and operands of different size: what shares a scale, and what it loses.
namespace quantrain::quant {
namespace {

using quantrain::test::values;
using test::check_parity;
using test::last_output;
using test::random_images;

constexpr float kLarge = 100.0f;
constexpr float kSmall = 0.1f;

/// Two smooth functions of four inputs in [0, 1], between -1 and 1.
Tensor targets_of(const Tensor& x) {
  Tensor y = Tensor::empty({x.dim(0), 2});
  const Floats in = x.floats();
  for (int64_t i = 0; i < x.dim(0); ++i) {
    const float a = in[4 * i], b = in[4 * i + 1], c = in[4 * i + 2], d = in[4 * i + 3];
    y.mutable_data()[2 * i] = std::sin(3.0f * a) * b - c * d;
    y.mutable_data()[2 * i + 1] = a * d - b * c;
  }
  return y;
}

/// A regression with an output near 100 and one near 0.1: trained on outputs of size 1, then the
/// rows of its last layer multiplied by the sizes.
Sequential two_sizes() {
  manual_seed(5);
  Sequential net{Linear{4, 24}, ReLU{}, Linear{24, 2}};
  Adam optimizer(net.parameters(), {.learning_rate = 0.02f});
  for (uint64_t step = 0; step < 300; ++step) {
    const Tensor x = random_images({128, 4}, step);
    optimizer.zero_grad();
    mse_loss(net(x), targets_of(x)).backward();
    optimizer.step();
  }
  auto& last = dynamic_cast<Linear&>(net.find("2"));
  Tensor weight = last.weight();
  Tensor bias = last.bias();
  for (int64_t i = 0; i < 48; ++i) weight.mutable_data()[i] *= i < 24 ? kLarge : kSmall;
  bias.mutable_data()[0] *= kLarge;
  bias.mutable_data()[1] *= kSmall;
  return net;
}

/// Root mean square error of the small output, whose target is kSmall times the function.
double small_error(const std::vector<float>& y, const Tensor& x) {
  const std::vector<float> right = values(targets_of(x));
  double sum = 0.0;
  for (size_t i = 1; i < y.size(); i += 2) {
    const double error = double{y[i]} - double{kSmall} * double{right[i]};
    sum += error * error;
  }
  return std::sqrt(2.0 * sum / static_cast<double>(y.size()));
}

std::vector<float> run_deployed(const IntegerModel& model, const Tensor& x) {
  std::vector<float> y(static_cast<size_t>(x.dim(0) * model.output_size()));
  model.run(test::span_of(x), y);
  return y;
}

/// Concatenates 416 times the first half of its input with its second half, scores in [0, 1].
class Boxes : public Module {
 public:
  Boxes() : boxes_(add("boxes", scaled(416.0f))), scores_(add("scores", scaled(1.0f))) {
    left_ = add("left", Slice{-1, {.end = 4}});
    right_ = add("right", Slice{-1, {.begin = 4}});
    all_ = add("all", Concat{});
  }
  std::string_view type() const override { return "Boxes"; }

 protected:
  Tensor forward(const Tensor& x) override {
    return (*all_)((*boxes_)((*left_)(x)), (*scores_)((*right_)(x)));
  }

 private:
  static Linear scaled(float factor) {
    Tensor weight = Tensor::zeros({4, 4});
    for (int64_t i = 0; i < 4; ++i) weight.mutable_data()[5 * i] = factor;
    return Linear{weight};
  }
  std::shared_ptr<Linear> boxes_, scores_;
  std::shared_ptr<Slice> left_, right_;
  std::shared_ptr<Concat> all_;
};

}  // namespace

TEST_CASE("a small output beside a large one keeps its accuracy", "[quant][outputs]") {
  Sequential net = two_sizes();
  const Tensor x = random_images({1000, 4}, 777);
  const Tensor some = random_images({256, 4}, 778);
  net.eval();
  const double error = small_error(values(net(x)), x);
  CHECK(error < 0.004);
  QConfig config = QConfig::int8();
  const bool per_tensor = GENERATE(false, true);
  if (per_tensor) {
    config.layers["2"] = config.model;
    config.layers["2"].weight.per_channel = false;
  }
  prepare_ptq(net, some, config);
  calibrate(net, some);
  const IntegerModel model = convert(net, some);
  CHECK(last_output(model).scale.size() == (per_tensor ? 1 : 2));
  check_parity(net, model, x);
  const std::vector<float> y = run_deployed(model, x);
  CHECK(y == values(net(x)));
  if (per_tensor) {  // 127 codes for weights up to 100 leave none to weights below 0.4
    CHECK(small_error(y, x) > 3.0 * error);
    CHECK(model.logit_scale() > 0.0);
  } else {
    CHECK(small_error(y, x) < 1.3 * error);
  }
}

TEST_CASE("training quantized keeps a small output, too", "[quant][outputs]") {
  Sequential net = two_sizes();
  const Tensor x = random_images({1000, 4}, 777);
  net.eval();
  const double error = small_error(values(net(x)), x);
  net.train();
  prepare_qat(net, random_images({2, 4}, 1), QConfig::int8());
  for (uint64_t step = 0; step < 50; ++step) net(random_images({128, 4}, step));
  net.eval();
  CHECK(small_error(run_deployed(convert(net, x), x), x) < 1.3 * error);
}

TEST_CASE("the classes of an output with several scales are those of its real values",
          "[quant][outputs]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = test::conv_net();
  prepare_qat(net, example, QConfig::bits(2, 8));
  test::train_a_little(net, {6, 8, 8, 1}, 5);
  const IntegerModel model = convert(net, example);
  REQUIRE(last_output(model).scale.size() == 4);
  const Tensor x = random_images({500, 8, 8, 1}, 2);
  std::vector<int32_t> classes(500);
  model.classify(test::span_of(x), classes);
  const std::vector<float> y = run_deployed(model, x);
  for (size_t i = 0; i < classes.size(); ++i) {
    const auto row = y.begin() + static_cast<std::ptrdiff_t>(4 * i);
    CHECK(classes[i] == std::max_element(row, row + 4) - row);
  }
}

TEST_CASE("the plan says which operand of a concatenation loses how many bits",
          "[quant][outputs][plan]") {
  const Tensor x = random_images({64, 8}, 3);
  Boxes net;
  prepare_ptq(net, x, QConfig::int8());
  calibrate(net, x);
  const Plan rows = plan(net, x);
  const auto row = std::find_if(
      rows.rows.begin(), rows.rows.end(), [](const PlanRow& r) { return r.name == "all"; });
  REQUIRE(row != rows.rows.end());
  REQUIRE(row->operands.size() == 2);
  const PlanOperand& boxes = row->operands[0];
  const PlanOperand& scores = row->operands[1];
  CHECK(boxes.name == "boxes");
  CHECK(boxes.bits == 8);
  CHECK(boxes.lost_bits == 0.0);
  CHECK(boxes.range.max > 400.0f);
  CHECK(scores.name == "scores");
  CHECK(scores.range.max == quantrain::test::Approx(1.0).epsilon(0.05));
  // log2(416): less than one of the 8 bits remains, and all scores become 0.
  CHECK(scores.lost_bits == quantrain::test::Approx(8.7).margin(0.1));
  std::ostringstream text;
  text << rows;
  CHECK_THAT(text.str(),
             quantrain::test::ContainsSubstring("\nall: operand scores loses 8.7 of its 8 bits, "
                                                "because the output's scale is 41"));
  CHECK(text.str().find("operand boxes") == std::string::npos);
  const std::vector<float> y = values(net(x));
  for (size_t i = 0; i < y.size(); ++i) {
    if (i % 8 >= 4) CHECK(std::abs(y[i]) < 2.0f);  // 0, or one step of 1.6
  }
  // Other rows have no operands.
  for (const PlanRow& other : rows.rows) CHECK((other.name == "all" || other.operands.empty()));
}

TEST_CASE("the plan lists the operands of an addition, and prints none of similar size",
          "[quant][outputs][plan]") {
  const Tensor example = random_images({4, 8, 8, 1}, 1);
  Sequential net = test::branched_net();
  prepare_ptq(net, example, QConfig::int8());
  calibrate(net, example);
  const Plan rows = plan(net, example);
  int64_t operands = 0;
  for (const PlanRow& row : rows.rows) {
    operands += std::ssize(row.operands);
    for (const PlanOperand& operand : row.operands) CHECK(operand.lost_bits < 3.0);
  }
  CHECK(operands == 4);  // of an addition and a concatenation
  std::ostringstream text;
  text << rows;
  CHECK(text.str().find("operand") == std::string::npos);
}

}  // namespace quantrain::quant
