#include "layers/network/network.hpp"

#include <sstream>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "layers/layers.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

// A namespace of its own, because other tests have helpers of the same names.
namespace quantrain::network_tests {

using test::random_tensor;
using test::values;

namespace {

NetworkParts residual_parts() {
  manual_seed(3);
  return {.inputs = {{.name = "image", .shape = {4, 4, 2}, .range = Range{0.0f, 1.0f}}},
          .steps = {{"block.conv",
                     std::make_shared<Conv2d>(
                         2, 2, Conv2d::Options{.kernel = 3, .padding = 1, .bias = false}),
                     {"image"}},
                    {"block.norm", std::make_shared<BatchNorm2d>(2), {"block.conv"}},
                    {"block.relu", std::make_shared<ReLU>(), {"block.norm"}},
                    {"sum", std::make_shared<Add>(), {"block.relu", "image"}},
                    {"flatten", std::make_shared<Flatten>(), {"sum"}},
                    {"fc", std::make_shared<Linear>(32, 3), {"flatten"}}},
          .outputs = {"fc"},
          .classes = {"a", "b", "c"}};
}

/// The same network as a module.
class ByHand : public Module {
 public:
  ByHand()
      : conv_(add("conv", Conv2d{2, 2, {.kernel = 3, .padding = 1, .bias = false}})),
        norm_(add("norm", BatchNorm2d{2})),
        fc_(add("fc", Linear{32, 3})) {}
  std::string_view type() const override { return "ByHand"; }

 protected:
  Tensor forward(const Tensor& x) override {
    return (*fc_)(flatten(quantrain::add(relu((*norm_)((*conv_)(x))), x)));
  }

 private:
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<BatchNorm2d> norm_;
  std::shared_ptr<Linear> fc_;
};

template <class Change>
Network changed(const Change& change) {
  NetworkParts parts = residual_parts();
  change(parts);
  return Network(std::move(parts));
}

}  // namespace

TEST_CASE("a network of steps computes and trains as the module with these layers",
          "[layers][network]") {
  Network net(residual_parts());
  manual_seed(3);
  ByHand other;
  const Tensor x = random_tensor({5, 4, 4, 2}, 7, 0.0f, 1.0f);
  for (const bool training : {true, false}) {
    net.train(training);
    other.train(training);
    CHECK(values(net(x)) == values(other(x)));
  }
  net.train();
  other.train();
  Tensor loss = mean(net(x)), other_loss = mean(other(x));
  loss.backward();
  other_loss.backward();
  const std::vector<Tensor> own = net.parameters(), others = other.parameters();
  REQUIRE(own.size() == others.size());
  for (size_t i = 0; i < own.size(); ++i) CHECK(values(own[i].grad()) == values(others[i].grad()));
}

TEST_CASE("a step's name is the path of its layer", "[layers][network]") {
  Network net(residual_parts());
  std::vector<std::string> names;
  for (const NamedState& entry : net.named_parameters()) {
    names.push_back(entry.name);
    CHECK(entry.tensor.name() == entry.name);
  }
  CHECK(names ==
        std::vector<std::string>{
            "block.conv.weight", "block.norm.weight", "block.norm.bias", "fc.weight", "fc.bias"});
  CHECK(net.find("block.norm").type() == "BatchNorm2d");
  net.find("block.norm").eval();
  CHECK_FALSE(net.steps()[1].layer->training());
  CHECK(net.example()[0].shape() == Shape{1, 4, 4, 2});
  CHECK(net.example()[0].source_codes()->params.float_range().max == 1.0f);
}

TEST_CASE("layers are listed in the order that the parts ask for", "[layers][network]") {
  Network net = changed([](NetworkParts& parts) { parts.listed = {"fc", "block.relu"}; });
  CHECK(net.named_parameters()[0].name == "fc.weight");
  CHECK(net.named_modules()[1].name == "fc");
  CHECK(net.named_modules()[3].name == "block.relu");
}

TEST_CASE("steps read tensors of the network", "[layers][network]") {
  NetworkParts parts{
      .inputs = {{.name = "x"}},
      .tensors = {{"gate.scale", Tensor::full({3}, 2.0f), true}, {"one", Tensor::full({}, 1.0f)}},
      .steps = {{"gate.mul", std::make_shared<Mul>(), {"x", "gate.scale"}},
                {"sub", make_layer("sub", {}), {"gate.mul", "one"}},
                {"parts", make_layer("concat", {.options = {{"axis", int64_t{1}}}}), {"sub", "x"}}},
      .outputs = {"parts", "x"}};
  parts.steps[0].layer = make_layer("mul", {});
  Network net(std::move(parts));
  const std::vector<Tensor> y = net(std::vector{random_tensor({2, 3}, 1)});
  REQUIRE(y.size() == 2);
  CHECK(y[0].shape() == Shape{2, 6});
  CHECK(values(y[0])[0] == 2.0f * values(y[1])[0] - 1.0f);
  REQUIRE(net.named_parameters().size() == 1);
  CHECK(net.named_parameters()[0].name == "gate.scale");
  CHECK(net.named_buffers()[0].name == "one");
  CHECK_THROWS_AS(net(random_tensor({2, 3}, 1)), ShapeError);  // two outputs
  CHECK_THROWS_AS(net(random_tensor({2, 3}, 1), random_tensor({2, 3}, 1)),
                  ShapeError);  // two inputs
}

TEST_CASE("a network whose parts do not fit is refused by their names", "[layers][network]") {
  const auto refuses = [](const char* message, const auto& change) {
    QUANTRAIN_CHECK_ERROR(changed(change), GraphError, message);
  };
  using Parts = NetworkParts&;
  refuses("there is no input", [](Parts p) { p.inputs.clear(); });
  refuses("there is no output", [](Parts p) { p.outputs.clear(); });
  refuses("\"block.relu\" reads \"norm\", which does not exist",
          [](Parts p) { p.steps[2].inputs = {"norm"}; });
  refuses("computed later", [](Parts p) { p.steps[0].inputs = {"fc"}; });
  refuses("its own result", [](Parts p) { p.steps[2].inputs = {"block.relu"}; });
  refuses("are named \"image\"", [](Parts p) { p.steps[3].name = "image"; });
  refuses("are named \"fc\"", [](Parts p) { p.steps[3].name = "fc"; });
  refuses("is also a group", [](Parts p) { p.steps[5].name = "block"; });
  refuses("lies below \"fc\"", [](Parts p) {
    p.steps.push_back({"fc.relu", std::make_shared<ReLU>(), {"fc"}});
  });
  refuses("an empty part", [](Parts p) { p.steps[0].name = "block..conv"; });
  refuses("an empty part", [](Parts p) { p.inputs[0].name = ""; });
  refuses("UTF-8", [](Parts p) { p.steps[0].name = "\xff"; });
  refuses("the name of a slot", [](Parts p) { p.steps[0].name = "weight_slot"; });
  refuses("takes 1", [](Parts p) { p.steps[2].inputs = {"block.norm", "image"}; });
  refuses("reads nothing", [](Parts p) { p.steps[2].inputs.clear(); });
  refuses("is null", [](Parts p) { p.steps[2].layer = nullptr; });
  refuses("the layer of another step", [](Parts p) { p.steps[4].layer = p.steps[2].layer; });
  refuses("output \"logits\" does not exist", [](Parts p) { p.outputs = {"logits"}; });
  refuses("tensor \"t\" is undefined", [](Parts p) { p.tensors = {{"t", Tensor()}}; });
  refuses("`listed` names \"image\"", [](Parts p) { p.listed = {"image"}; });
}

TEST_CASE("every layer is made again from its members", "[layers][network]") {
  const auto again = [](const Module& layer) {
    const LayerMembers members = members_of(layer);
    const std::shared_ptr<Module> made = make_layer(layer.type(), members);
    CHECK(made->type() == layer.type());
    const LayerMembers others = members_of(*made);
    CHECK(others.options == members.options);
    REQUIRE(others.state.size() == members.state.size());
    for (size_t i = 0; i < members.state.size(); ++i) {
      CHECK(others.state[i].name == members.state[i].name);
      CHECK(others.state[i].same_as(members.state[i]));
    }
  };
  again(Conv2d{4, 6, {.kernel = {3, 1}, .stride = {2, 1}, .padding = {1, 0}, .groups = 2}});
  again(Conv1d{4, 4, {.kernel = 5, .padding = 2, .groups = 4, .bias = false, .dilation = 2}});
  again(BatchNorm1d{3, {.epsilon = 1e-3f, .momentum = 0.2f}});
  again(BatchNorm2d{3});
  again(Linear{3, 4, {.bias = false}});
  again(Dropout{0.25f});
  again(MaxPool2d{{3, 2}, {.stride = 2, .padding = 1, .ceil_mode = true}});
  again(AvgPool2d{2, {.count_include_pad = true}});
  again(MaxPool1d{3, {.stride = 1}});
  again(AvgPool1d{3, {.padding = 1}});
  again(AdaptiveAvgPool2d{{2, 1}});
  again(AdaptiveMaxPool2d{2});
  again(AdaptiveAvgPool1d{2});
  again(AdaptiveMaxPool1d{2});
  again(Mean{{1, 2}, {.keepdim = true}});
  again(Max{-1});
  again(Slice{1, {.end = -1, .step = 2}});
  again(Reshape{{-1, 2}});
  again(Upsample{{2, 1}});
  again(ZeroPad1d{{.left = 3}});
  again(ZeroPad2d{{.right = 1, .bottom = 2}});
  again(PReLU{3, 0.1f});
  again(LeakyReLU{0.2f});
  again(ELU{0.5f});
  again(Clamp{-std::numeric_limits<float>::infinity(), 6.0f});
  again(OnesChannel{});
  again(Softmax{});
}

TEST_CASE("options of layers are what their members say", "[layers][network]") {
  const LayerMembers members = members_of(MaxPool2d{{3, 2}, {.stride = 2, .padding = 1}});
  std::ostringstream text;
  text << members.options;
  CHECK(text.str() == "kernel=[3, 2] stride=[2, 2] padding=[1, 1] ceil_mode=0 count_include_pad=0");
  CHECK(members_of(Dropout{0.25f}).options.real("p") == 0.25);
}

TEST_CASE("members that no layer has are refused by name", "[layers][network]") {
  const auto refuses = [](const char* message, const char* type, const LayerMembers& members) {
    QUANTRAIN_CHECK_ERROR(make_layer(type, members), Error, message);
  };
  const Tensor weight = Tensor::zeros({2, 3});
  refuses("no layer or operation is named \"Convolution\"", "Convolution", {});
  refuses("\"scale\" is missing", "Upsample", {});
  refuses("\"scale\" is not a list of two numbers",
          "Upsample",
          {.options = {{"scale", std::vector<int64_t>{2}}}});
  refuses("\"scale\" is not a list of two numbers", "Upsample", {.options = {{"scale", 2.0}}});
  refuses("\"slope\" is unknown", "ReLU", {.options = {{"slope", 0.1}}});
  refuses("\"weight\" is unknown", "ReLU", {.state = {{"weight", weight}}});
  refuses("\"weight\" is unknown", "sub", {.state = {{"weight", weight}}});
  refuses("the weight is undefined", "Linear", {});
  refuses("does not fit weight",
          "Linear",
          {.state = {{"weight", weight}, {"bias", Tensor::zeros({3})}}});
  refuses("\"alpha\" is too large", "ELU", {.options = {{"alpha", 1e300}}});
  refuses("\"keepdim\" is 2",
          "Mean",
          {.options = {{"axes", std::vector<int64_t>{1}}, {"keepdim", int64_t{2}}}});
  refuses("out of range",
          "Mean",
          {.options = {{"axes", std::vector<int64_t>{int64_t{1} << 40}}, {"keepdim", int64_t{0}}}});
  refuses("integers, expected floats", "Linear", {.state = {{"weight", IntegerBuffer({2, 3})}}});
  refuses("p must be in [0, 1)", "Dropout", {.options = {{"p", 1.0}, {"seed", int64_t{1}}}});
}

namespace {

/// A program's own layer.
class TimesPower : public Module {
 public:
  static constexpr std::string_view kType = "TimesPower";
  struct Members {
    int power = 1;
    Tensor weight;
    static void describe(auto& m, auto& member) {
      member("power", m.power);
      member("weight", m.weight);
    }
  };
  static TimesPower from(const Members& m) { return TimesPower(m.power, m.weight); }
  Members members() const { return {power_, weight_}; }
  TimesPower(int power, Tensor weight)
      : power_(power), weight_(add_parameter("weight", std::move(weight))) {}
  std::string_view type() const override { return kType; }

 protected:
  Tensor forward(const Tensor& x) override { return mul(x, weight_); }

 private:
  int power_;
  Tensor weight_;
};

}  // namespace

TEST_CASE("a program registers its own layers and operations", "[layers][network]") {
  const TimesPower own(2, Tensor::full({3}, 2.0f));
  CHECK(find_layer_type("TimesPower") == nullptr);
  QUANTRAIN_CHECK_ERROR(members_of(own), GraphError, "register_layer<TimesPower>");
  register_layer<TimesPower>();
  register_layer<TimesPower>();
  CHECK(members_of(own).options.integer("power") == 2);
  CHECK(make_layer("TimesPower", members_of(own))->parameters()[0].same_as(own.parameters()[0]));

  const auto apply = [](const Attributes& a, const std::vector<Tensor>& x) {
    return mul(x[0], Tensor::full({}, static_cast<float>(a.real("factor"))));
  };
  register_operation({"times", apply});
  const auto layer = make_layer("times", {.options = {{"factor", 3.0}}});
  CHECK(values((*layer)(Tensor::full({1}, 2.0f)))[0] == 6.0f);
  CHECK_THROWS_AS(register_operation({"times", apply}), GraphError);
  CHECK_THROWS_AS(register_operation({"Linear", apply}), GraphError);
  CHECK_THROWS_AS(register_operation({"nothing", nullptr}), GraphError);
}

TEST_CASE("a network prints its steps", "[layers][network]") {
  std::ostringstream text;
  text << Network(residual_parts());
  CHECK(
      text.str() ==
      "step        layer        reads              members\n"
      "image       (input)                         [4, 4, 2] range [0, 1]\n"
      "block.conv  Conv2d       image              stride=[1, 1] padding=[1, 1] groups=1 "
      "dilation=[1, 1] weight [2, 3, 3, 2]\n"
      "block.norm  BatchNorm2d  block.conv         epsilon=1e-05 momentum=0.1 weight [2] bias [2] "
      "running_mean [2] running_var [2]\n"
      "block.relu  ReLU         block.norm\n"
      "sum         Add          block.relu, image\n"
      "flatten     Flatten      sum\n"
      "fc          Linear       flatten            weight [3, 32] bias [3]\n"
      "outputs: fc\n"
      "classes: a, b, c\n");
}

}  // namespace quantrain::network_tests
