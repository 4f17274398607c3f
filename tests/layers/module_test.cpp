#include "layers/module.hpp"

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "layers/layers.hpp"
#include "tests/catch.hpp"
#include "tests/child.hpp"

namespace quantrain {
namespace {

using Log = std::vector<std::string>;

std::vector<std::string> names(const std::vector<NamedState>& entries) {
  std::vector<std::string> all;
  for (const NamedState& entry : entries) all.push_back(entry.name);
  return all;
}

/// Logs that it ran, and in which scope. Returns its input plus `added`.
class Probe : public Module {
 public:
  Probe(Log& log, std::string text, float added = 0.0f)
      : log_(&log), text_(std::move(text)), added_(added) {}
  std::string_view type() const override { return "Probe"; }

 protected:
  Tensor forward(const Tensor& x) override {
    log_->push_back(text_ + " in " + Scope::path());
    Tensor y = Tensor::empty(x.shape());
    for (int64_t i = 0; i < x.elements(); ++i) y.mutable_data()[i] = x.data()[i] + added_;
    return y;
  }

 private:
  Log* log_;
  std::string text_;
  float added_;
};

class WeightProbe : public WeightSlot {
 public:
  WeightProbe(Log& log, Weights replacement) : log_(&log), replacement_(std::move(replacement)) {}
  std::string_view type() const override { return "WeightProbe"; }
  Weights apply(const Weights& own, const Tensor& x) override {
    log_->push_back("weight");
    seen = own;
    seen_x = x;
    return replacement_;
  }
  Weights seen;
  Tensor seen_x;

 private:
  Log* log_;
  Weights replacement_;
};

class Block : public Module {
 public:
  Block() : conv_(add("conv", Conv2d{2, 2, {.kernel = 1}})), sum_(add("sum", Add{})) {}
  std::string_view type() const override { return "Block"; }

 protected:
  Tensor forward(const Tensor& x) override { return (*sum_)((*conv_)(x), x); }

 private:
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<Add> sum_;
};

}  // namespace

TEST_CASE("parameters and buffers are named by the path of their layer, in order",
          "[layers][module]") {
  const Sequential net{
      Conv2d{1, 2}, BatchNorm2d{2}, Sequential{Linear{4, 3, {.bias = false}}, ReLU{}}};
  CHECK(names(net.named_parameters()) ==
        Log{"0.weight", "0.bias", "1.weight", "1.bias", "2.0.weight"});
  CHECK(names(net.named_buffers()) == Log{"1.running_mean", "1.running_var"});
  for (const Tensor& parameter : net.parameters()) CHECK(parameter.requires_grad());
}

TEST_CASE("a parameter that two layers share is listed once", "[layers][module]") {
  Sequential net;
  const auto shared = std::make_shared<Linear>(2, 2);
  class Twice : public Module {
   public:
    explicit Twice(const std::shared_ptr<Linear>& layer) {
      add_parameter("a", layer->weight());
      add_parameter("b", layer->weight());
    }
    std::string_view type() const override { return "Twice"; }
  };
  net.add("twice", Twice{shared});
  CHECK(names(net.named_parameters()) == Log{"twice.a"});
}

TEST_CASE("named_modules lists parents before children, and find takes a path",
          "[layers][module]") {
  Sequential net{Block{}, ReLU{}};
  Log paths;
  for (const NamedModule& entry : net.named_modules()) paths.push_back(entry.name);
  CHECK(paths == Log{"", "0", "0.conv", "0.sum", "1"});
  CHECK(net.find("0.conv").type() == "Conv2d");
  QUANTRAIN_CHECK_ERROR(
      net.find("0.bn"), GraphError, "no layer \"0.bn\"; known: (root) 0 0.conv 0.sum 1");
}

TEST_CASE("names of children are unique, UTF-8 and without dots", "[layers][module]") {
  Sequential net;
  net.add("conv", ReLU{});
  QUANTRAIN_CHECK_ERROR(net.add("conv", ReLU{}), GraphError, "two children are named \"conv\"");
  QUANTRAIN_CHECK_ERROR(net.add("a.b", ReLU{}), GraphError, "empty or has a dot: \"a.b\"");
  QUANTRAIN_CHECK_ERROR(net.add("", ReLU{}), GraphError, "empty or has a dot");
  // Latin-1, a lone continuation byte, two truncated characters, three overlong encodings, a
  // surrogate, a code point above U+10FFFF, and two bytes that never occur in UTF-8.
  for (const char* name : {"caf\xe9",
                           "\x80",
                           "caf\xc3",
                           "\xe2\x82",
                           "\xc1\xbf",
                           "\xe0\x9f\xbf",
                           "\xf0\x8f\xbf\xbf",
                           "\xed\xa0\x80",
                           "\xf4\x90\x80\x80",
                           "\xf8\x88\x80\x80\x80",
                           "\xff"}) {
    QUANTRAIN_CHECK_ERROR(net.add(name, ReLU{}), GraphError, "not UTF-8");
  }
  // The last character of one byte, the first and the last of two, three and four bytes, and
  // U+D7FF, the last one before the surrogates.
  for (const char* name : {"\x7f",
                           "\xc2\x80",
                           "\xdf\xbf",
                           "\xe0\xa0\x80",
                           "\xed\x9f\xbf",
                           "\xef\xbf\xbf",
                           "\xf0\x90\x80\x80",
                           "\xf4\x8f\xbf\xbf"}) {
    CHECK_NOTHROW(net.add(name, ReLU{}));
  }
  CHECK(net.size() == 9);
}

TEST_CASE("train and eval reach children and the modules in slots", "[layers][module]") {
  Sequential net{Sequential{Linear{2, 2}}, ReLU{}};
  Module& linear = net.find("0.0");
  Log log;
  linear.slots().weight = std::make_shared<WeightProbe>(log, Weights{});
  linear.slots().output = std::make_shared<Probe>(log, "output");
  net.eval();
  CHECK_FALSE(net.training());
  CHECK_FALSE(linear.training());
  CHECK_FALSE(linear.slots().weight->training());
  CHECK_FALSE(linear.slots().output->training());
  net.train();
  CHECK(linear.slots().output->training());
  CHECK(net.find("1").training());
}

TEST_CASE("an evaluation guard restores every layer's own mode", "[layers][module]") {
  Sequential net{Dropout{0.5f}, ReLU{}};
  net.find("0").eval();
  {
    const EvaluationMode guard(net);
    CHECK_FALSE(net.training());
    CHECK_FALSE(net.find("1").training());
  }
  CHECK(net.training());
  CHECK_FALSE(net.find("0").training());
  CHECK(net.find("1").training());
}

TEST_CASE("slots run inside the layer's scope, in the order input, weight, output",
          "[layers][module]") {
  Sequential net;
  net.add("fc", Linear{2, 1});
  auto& fc = dynamic_cast<Linear&>(net.find("fc"));
  Log log;
  const Weights replacement{Tensor::from({1, 2}, std::vector<float>{1, 10}),
                            Tensor::from({1}, std::vector<float>{100})};
  auto weight = std::make_shared<WeightProbe>(log, replacement);
  fc.slots().inputs = {std::make_shared<Probe>(log, "input", 1.0f)};
  fc.slots().weight = weight;
  fc.slots().output = std::make_shared<Probe>(log, "output", 1000.0f);
  const Tensor y = net(Tensor::from({1, 2}, std::vector<float>{1, 2}));
  CHECK(log == Log{"input in fc", "weight", "output in fc"});
  CHECK(y.item() == 2 * 1 + 3 * 10 + 100 + 1000);
  CHECK(weight->seen.weight.same_as(fc.weight()));
  CHECK(weight->seen.bias.same_as(fc.bias()));
  CHECK(weight->seen_x.data()[1] == 3.0f);
}

TEST_CASE("scopes begin at the module that was called, like the paths of named_modules",
          "[layers][module]") {
  Log log;
  Sequential net;
  const auto body = net.add("body", Sequential{Probe{log, "probe"}});
  const Tensor x = Tensor::zeros({1});
  net(x);
  (*body)(x);
  body->find("0")(x);
  CHECK(log == Log{"probe in body.0", "probe in 0", "probe in "});
}

TEST_CASE("a body slot runs in place of the layer", "[layers][module]") {
  Log log;
  Linear fc{2, 1};
  fc.slots().body = std::make_shared<Probe>(log, "body");
  CHECK(fc(Tensor::zeros({3, 2})).shape() == Shape{3, 2});
  CHECK(log == Log{"body in "});
}

TEST_CASE("parameters of slots are listed between a layer's own and its children's",
          "[layers][module]") {
  Sequential net{Linear{1, 1}};
  net.slots().output = std::make_shared<Linear>(1, 1);
  CHECK(names(net.named_parameters()) ==
        Log{"output_slot.weight", "output_slot.bias", "0.weight", "0.bias"});
}

TEST_CASE("a layer refuses the wrong number of inputs", "[layers][module]") {
  const Tensor x = Tensor::zeros({1, 2});
  QUANTRAIN_CHECK_ERROR(ReLU{}(x, x), ShapeError, "[ReLU] does not take two inputs");
  QUANTRAIN_CHECK_ERROR(Add{}(x), ShapeError, "[Add] does not take one input");
}

namespace {

/// Nested modules, the innermost a ReLU.
std::shared_ptr<Sequential> nested(int levels) {
  auto inner = std::make_shared<Sequential>();
  inner->append(ReLU{});
  for (int i = 1; i < levels; ++i) {
    auto outer = std::make_shared<Sequential>();
    outer->slots().body = std::move(inner);
    inner = std::move(outer);
  }
  return inner;
}

class Holder : public Module {
 public:
  std::string_view type() const override { return "Holder"; }
  using Module::add_child;
};

}  // namespace

TEST_CASE("modules that nest too deep are refused, and destroyed without a crash",
          "[layers][module]") {
  constexpr int kMost = Module::kMostNested;
  const Tensor x = Tensor::full({1}, 2.0f);
  CHECK((*nested(kMost - 1))(x).item() == 2.0f);
  const quantrain::test::Child child = quantrain::test::in_child([&]() -> std::string {
    const std::shared_ptr<Sequential> deep = nested(20000);
    std::string texts;
    const std::vector<std::function<void()>> uses = {[&] { (*deep)(x); },
                                                     [&] { deep->named_parameters(); },
                                                     [&] { deep->named_buffers(); },
                                                     [&] { deep->train(); }};
    for (const auto& use : uses) {
      try {
        use();
      } catch (const GraphError& error) {
        texts += error.what();
      }
    }
    return texts;
  });
  CHECK(child.signal == 0);
  const std::string refusal =
      "[Sequential] modules nest deeper than 500 levels; is one of them a part of itself?";
  CHECK(child.text == refusal + refusal + refusal + refusal);
}

TEST_CASE("children that nest too deep are refused, and destroyed without a crash",
          "[layers][module]") {
  const quantrain::test::Child child = quantrain::test::in_child([&]() -> std::string {
    auto root = std::make_shared<Holder>();
    std::shared_ptr<Holder> last = root;
    for (int i = 0; i < 20000; ++i) {
      auto next = std::make_shared<Holder>();
      last->add_child("next", next);
      last = std::move(next);
    }
    try {
      root->named_modules();
    } catch (const GraphError& error) {
      return error.what();
    }
    return "no error";
  });
  CHECK(child.text ==
        "[Holder] modules nest deeper than 500 levels; is one of them a part of itself?");
}

TEST_CASE("a module that is a part of itself is refused", "[layers][module]") {
  const quantrain::test::Child child = quantrain::test::in_child([&]() -> std::string {
    auto a = std::make_shared<Holder>();
    auto b = std::make_shared<Holder>();
    a->add_child("b", b);
    b->add_child("a", a);
    const auto body = std::make_shared<Sequential>(ReLU{});
    body->slots().body = body;
    const auto output = std::make_shared<Sequential>(ReLU{});
    output->slots().output = output;
    int refused = 0;
    const std::vector<std::function<void()>> uses = {[&] { a->named_modules(); },
                                                     [&] { a->find("c"); },
                                                     [&] { a->parameters(); },
                                                     [&] { b->eval(); },
                                                     [&] { (*body)(Tensor::full({1}, 1.0f)); },
                                                     [&] { output->parameters(); }};
    for (const auto& use : uses) {
      try {
        use();
      } catch (const GraphError&) {
        ++refused;
      }
    }
    return std::to_string(refused);
  });
  CHECK(child.text == "6");
}

TEST_CASE("a child that is null is refused", "[layers][module]") {
  const quantrain::test::Child child = quantrain::test::in_child([&]() -> std::string {
    Holder holder;
    holder.add_child("none", nullptr);
    return "no error";
  });
  CHECK(child.text == "[Holder] the child \"none\" is null");
}

TEST_CASE("groups near 2^62 are refused", "[layers][conv2d]") {
  const Tensor weight = Tensor::full({4, 1, 1, 4}, 1.0f);
  const int64_t huge = int64_t{1} << 62;
  QUANTRAIN_CHECK_ERROR((Conv2d{weight, Tensor(), {.groups = huge}}),
                        ShapeError,
                        "[Conv2d] groups 4611686018427387904 does not fit weight [4, 1, 1, 4]");
  QUANTRAIN_CHECK_ERROR((Conv2d{weight, Tensor(), {.groups = 0}}), ShapeError, "groups 0");
  QUANTRAIN_CHECK_ERROR(
      conv2d(Tensor::full({1, 1, 1, 4}, 1.0f), weight, Tensor(), {.groups = huge}),
      ShapeError,
      "channels do not fit 4611686018427387904 groups");
}

TEST_CASE("a parameter's name is its path from the root", "[layers][module]") {
  Sequential net{Sequential{Linear{2, 2}, BatchNorm2d{2}}, Linear{2, 1}};
  for (const NamedState& entry : net.named_parameters()) CHECK(entry.tensor.name() == entry.name);
  CHECK(net.parameters().front().name() == "0.0.weight");
}

}  // namespace quantrain
