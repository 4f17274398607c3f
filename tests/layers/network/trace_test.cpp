#include "layers/network/trace.hpp"

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/optim/adam.hpp"
#include "layers/layers.hpp"
#include "layers/network/copy_network.hpp"
#include "layers/network/network_file.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

// A namespace of its own, because other tests have helpers of the same names.
namespace quantrain::trace_tests {

using test::random_tensor;
using test::values;

namespace {

using Tensors = std::vector<Tensor>;

/// The state, without the constants of operations, which only a trace has.
std::vector<float> bits_of(const Module& net) {
  std::vector<float> all;
  for (const NamedState& entry : state(net)) {
    if (entry.name.ends_with("_constant")) continue;
    const std::vector<float> some = values(entry);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::vector<std::string> state_names(const Module& net) {
  std::vector<std::string> names;
  for (const NamedState& entry : state(net)) names.push_back(entry.name);
  return names;
}

std::vector<std::vector<float>> outputs_of(Module& net, const Tensors& x) {
  std::vector<std::vector<float>> all;
  for (const Tensor& y : net(x)) all.push_back(values(y));
  return all;
}

/// Everything that 20 steps of Adam give: outputs and gradients of each step, and the state.
std::vector<float> train_steps(Module& net, const std::vector<Shape>& shapes, int steps = 20) {
  std::vector<float> all;
  Adam optimizer(net.parameters(), {.learning_rate = 0.01f});
  const auto keep = [&](const std::vector<float>& some) {
    all.insert(all.end(), some.begin(), some.end());
  };
  for (int step = 0; step < steps; ++step) {
    Tensors x;
    for (const Shape& shape : shapes)
      x.push_back(random_tensor(shape, static_cast<uint64_t>(100 * step) + x.size(), 0.0f, 1.0f));
    optimizer.zero_grad();
    Tensor loss = Tensor::zeros({});
    for (const Tensor& y : net(x)) {
      keep(values(y));
      loss = add(loss, mean(square(y)));
    }
    loss.backward();
    for (const Tensor& parameter : net.parameters()) {
      if (parameter.grad().defined()) keep(values(parameter.grad()));
    }
    optimizer.step();
  }
  keep(bits_of(net));
  return all;
}

/// Checks that the trace of a module, and the network in its file, are that module to the bit: in
/// both modes, and while they train.
template <class Make>
void check_same(const Make& make, const std::vector<Shape>& shapes) {
  manual_seed(5);
  auto reference = make();
  manual_seed(5);
  auto original = make();
  Tensors example, x;
  for (const Shape& shape : shapes) {
    x.push_back(random_tensor(shape, 40 + x.size(), 0.0f, 1.0f));
    std::vector<int64_t> one(shape.begin(), shape.end());
    one[0] = 1;
    example.push_back(random_tensor(Shape(one), 60 + example.size(), 0.0f, 1.0f));
  }
  const std::vector<float> before = bits_of(original);
  Network traced = trace(original, example);
  CHECK(bits_of(original) == before);
  CHECK(state_names(original) == state_names(reference));
  for (const NamedState& entry : original.named_parameters()) {
    CHECK(entry.tensor.name() == entry.name);
    CHECK(entry.tensor.requires_grad());
  }
  const test::TemporaryFolder folder;
  save_network(traced, folder / "net");
  Network loaded = load_network(folder / "net");
  Network copied = copy(traced);

  for (const bool training : {false, true}) {
    manual_seed(5);
    auto fresh = make();
    for (Module* net : {static_cast<Module*>(&fresh),
                        static_cast<Module*>(&traced),
                        static_cast<Module*>(&loaded),
                        static_cast<Module*>(&copied)})
      net->train(training);
    if (training) continue;
    const auto expected = outputs_of(fresh, x);
    CHECK(outputs_of(traced, x) == expected);
    CHECK(outputs_of(loaded, x) == expected);
    CHECK(outputs_of(copied, x) == expected);
  }
  const std::vector<float> expected = train_steps(reference, shapes);
  CHECK(train_steps(traced, shapes) == expected);
  CHECK(train_steps(loaded, shapes) == expected);
  CHECK(train_steps(copied, shapes) == expected);

  // Stopped after ten steps of the reference, and resumed from a file.
  save_network(loaded, folder / "later");
  Network resumed = load_network(folder / "later");
  CHECK(train_steps(resumed, shapes, 3) == train_steps(loaded, shapes, 3));
}

/// Operations outside of layers, a parameter of its own, two inputs and two outputs.
class Functional : public Module {
 public:
  Functional()
      : conv_(add("conv", Conv2d{2, 4, {.kernel = 3, .padding = 1}})),
        norm_(add("norm", BatchNorm2d{4})),
        drop_(add("drop", Dropout{0.3f})),
        fc_(add("fc", Linear{12, 3})),
        scale_(add_parameter("scale", Tensor::full({4}, 1.5f))) {}
  std::string_view type() const override { return "Functional"; }

 protected:
  Tensors forward(const Tensors& x) override {
    const int64_t n = x[0].dim(0);
    Tensor a = relu((*norm_)((*conv_)(x[0])));  // [n, 4, 4, 4]
    const Tensor kept = (*drop_)(a);
    a = mul(a, scale_) * 0.5f + kept;                              // dropout of a residual
    const Tensor halves = max_pool2d(a, {.kernel = 2});            // [n, 2, 2, 4]
    Tensor b = reshape(halves, {n, 16});                           // the batch said literally
    b = slice(b, 1, {.begin = 1, .end = 13, .step = 2});           // [n, 6]
    b = concat({b, sigmoid(x[1])}, -1);                            // [n, 12]
    const Tensor s = softmax((*fc_)(b));                           // [n, 3]
    const Tensor t = transpose(reshape(s, {n, 3, 1}), {0, 2, 1});  // [n, 1, 3]
    const Tensor m = mean(avg_pool2d(a, {.kernel = 4}), 2, true);  // [n, 1, 1, 4]
    const Tensor u = concat({flatten(m), reshape(t, {n, 3})}, 1);  // [n, 7]
    return {s - sum(s, -1, true) / 3.0f, leaky_relu(clamp(u, -1.0f, 1.0f), 0.2f)};
  }

 private:
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<BatchNorm2d> norm_;
  std::shared_ptr<Dropout> drop_;
  std::shared_ptr<Linear> fc_;
  Tensor scale_;
};

/// Layers that run twice, in an order that is not that of their registration.
class Shared : public Module {
 public:
  Shared()
      : last_(add("last", Linear{4, 2})),
        fc_(add("fc", Linear{4, 4})),
        relu_(add("relu", ReLU{})),
        norm_(add("norm", BatchNorm1d{4})),
        drop_(add("drop", Dropout{0.2f})),
        sum_(add("sum", Add{})) {}
  std::string_view type() const override { return "Shared"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor a = (*relu_)((*fc_)((*drop_)(x)));
    const Tensor b = (*relu_)((*norm_)((*fc_)((*drop_)(a))));
    return (*last_)((*norm_)((*sum_)(a, b)));
  }

 private:
  std::shared_ptr<Linear> last_, fc_;
  std::shared_ptr<ReLU> relu_;
  std::shared_ptr<BatchNorm1d> norm_;
  std::shared_ptr<Dropout> drop_;
  std::shared_ptr<Add> sum_;
};

/// A class that derives from a layer, and one that runs a single operation.
class OwnConv : public Conv2d {
 public:
  OwnConv() : Conv2d(2, 3, {.kernel = 3}) {}
  std::string_view type() const override { return "OwnConv"; }
};
class OwnActivation : public Module {
 public:
  std::string_view type() const override { return "OwnActivation"; }

 protected:
  Tensor forward(const Tensor& x) override { return hard_swish(x); }
};

Sequential own_classes() {
  return Sequential{OwnConv{}, OwnActivation{}, Dropout{0.0f}, GlobalAvgPool2d{}, Flatten{}};
}

Sequential nested() {
  return Sequential{
      Sequential{Conv1d{3, 4, {.kernel = 3, .padding = 1, .bias = false}}, BatchNorm1d{4}, ReLU{}},
      Sequential{Sequential{Upsample{{2, 1}}, ZeroPad1d{{.left = 1}}}, Mean{1}},
      PReLU{4},
      Dropout{0.5f},
      Linear{4, 2}};
}

template <class F>
class Lambda : public Module {
 public:
  explicit Lambda(F f) : f_(std::move(f)) {}
  std::string_view type() const override { return "Lambda"; }

 protected:
  Tensor forward(const Tensor& x) override { return f_(*this, x); }

 private:
  F f_;
};

template <class F>
Network traced(const F& f) {
  Lambda<F> net(f);
  return trace(net, random_tensor({2, 3, 4}, 1));
}

/// An operation of the tests' own.
class CubeNode : public Node {
 public:
  CubeNode(const char* type, float factor) : type_(type), factor_(factor) {}
  std::string_view type() const override { return type_; }
  Attributes attributes() const override { return {{"factor", double{factor_}}}; }
  Tensors backward(Tensor grad_y) override {
    return {mul(grad_y, mul(Tensor::full({}, 3.0f * factor_), square(input(0))))};
  }

 private:
  const char* type_;
  float factor_;
};

Tensor cube(const Tensor& x, float factor, const char* type = "cube_test") {
  Tensor y = Tensor::empty(x.shape());
  const Floats from = x.floats();
  float* const to = y.mutable_data();
  for (int64_t i = 0; i < x.elements(); ++i) to[i] = factor * from[i] * from[i] * from[i];
  return record<CubeNode>(std::move(y), {x}, type, factor);
}

}  // namespace

TEST_CASE("a trace is the module to the bit: operations outside of layers", "[layers][trace]") {
  check_same([] { return Functional(); }, {{3, 4, 4, 2}, {3, 6}});
}

TEST_CASE("a trace is the module to the bit: layers that run twice", "[layers][trace]") {
  check_same([] { return Shared(); }, {{6, 4}});
}

TEST_CASE("a trace is the module to the bit: classes of the program's own", "[layers][trace]") {
  check_same(own_classes, {{4, 5, 5, 2}});
}

TEST_CASE("a trace is the module to the bit: nested layers", "[layers][trace]") {
  check_same(nested, {{5, 6, 3}});
}

TEST_CASE("steps are named by the paths of their layers", "[layers][trace]") {
  const auto names_of = [](const Network& net) {
    std::string all;
    for (const NetworkStep& step : net.steps()) all += step.name + ' ';
    return all;
  };
  Functional functional;
  const Network net =
      trace(functional, Tensors{random_tensor({2, 4, 4, 2}, 1), random_tensor({2, 6}, 2)});
  CHECK(names_of(net) ==
        "conv norm relu drop mul mul_2 add max_pool2d reshape slice sigmoid concat fc softmax "
        "reshape_2 transpose avg_pool2d mean flatten reshape_3 concat_2 sum div sub clip "
        "leaky_relu ");
  CHECK(net.tensors()[0].name == "scale");
  CHECK(net.tensors()[0].is_parameter);
  CHECK(net.tensors()[1].name == "mul_2_constant");
  CHECK_FALSE(net.tensors()[1].is_parameter);
  CHECK(net.outputs() == std::vector<std::string>{"sub", "leaky_relu"});
  CHECK(net.inputs()[1].shape == std::vector<int64_t>{6});

  Shared shared;
  const Network twice = trace(shared, random_tensor({2, 4}, 1));
  CHECK(names_of(twice) == "drop fc relu drop_2 fc_2 norm relu_2 sum norm_2 last ");
  CHECK(twice.named_parameters()[0].name == "last.weight");
  CHECK(twice.parameters()[0].same_as(shared.parameters()[0]));

  Sequential own = own_classes();
  const Network classes = trace(own, random_tensor({2, 5, 5, 2}, 1));
  CHECK(names_of(classes) == "0 1 2 3 4 ");
  CHECK(classes.steps()[0].layer->type() == "Conv2d");
  CHECK(classes.steps()[1].layer->type() == "HardSwish");

  Linear one(3, 2);
  CHECK(names_of(trace(one, random_tensor({2, 3}, 1))) == "Linear ");
}

TEST_CASE("a trace keeps modes, frozen parameters, and the module", "[layers][trace]") {
  Sequential net = nested();
  net.find("0.1").eval();
  net.parameters()[0].set_requires_grad(false);
  Network other = trace(net, random_tensor({1, 6, 3}, 1));
  CHECK(other.training());
  CHECK_FALSE(other.find("0.1").training());
  CHECK_FALSE(net.find("0.1").training());
  CHECK(net.find("0.0").training());
  CHECK_FALSE(net.parameters()[0].requires_grad());
  CHECK_FALSE(other.parameters()[0].requires_grad());
  CHECK(net.find("0.0").name() == "0");
  const test::TemporaryFolder folder;
  save_network(other, folder / "net");
  Network loaded = load_network(folder / "net");
  CHECK_FALSE(loaded.find("0.1").training());
  CHECK(loaded.find("0.0").training());
  CHECK_FALSE(loaded.parameters()[0].requires_grad());
  CHECK(loaded.parameters()[1].requires_grad());
}

TEST_CASE("inputs get the example's shape, range and features", "[layers][trace]") {
  auto codes = std::make_shared<Codes>(
      Codes{Buffer<uint8_t>(6), {}, integer::input_params({-1.0f, 3.0f}, "test")});
  std::fill_n(codes->bytes.data(), 6, uint8_t{7});
  codes->features = std::make_shared<const integer::InputFeatures>(
      integer::InputFeatures{{1.0f, 2.0f, 3.0f}, {1.0f, 0.5f, 2.0f}});
  const Tensor example = Tensor::decoded({2, 3}, codes);
  Sequential net{Linear{3, 2}};
  const Network traced_net = trace(net, example);
  const NetworkInput& input = traced_net.inputs()[0];
  CHECK(input.name == "input");
  CHECK(input.shape == std::vector<int64_t>{3});
  REQUIRE(input.range.has_value());
  CHECK(integer::input_params(*input.range, "test") == codes->params);
  CHECK(input.features == *codes->features);
  const Tensor again = traced_net.example()[0];
  CHECK(again.source_codes()->same_meaning(*codes));
}

TEST_CASE("a network that a Network cannot hold is refused by layer and operation",
          "[layers][trace]") {
  const auto refuses = [](const char* message, const auto& f) {
    QUANTRAIN_CHECK_ERROR(traced(f), GraphError, message);
  };
  refuses("operation cube_unknown is not known by its name",
          [](Module&, const Tensor& x) { return cube(x, 1.0f, "cube_unknown"); });
  refuses("in training than in evaluation: operation dropout", [](Module& net, const Tensor& x) {
    return dropout(x, {.p = 0.5f, .training = net.training()});
  });
  refuses("in training than in evaluation",
          [](Module& net, const Tensor& x) { return net.training() ? relu(x) : sigmoid(x); });
  refuses("no recorded operation computed it", [](Module&, const Tensor& x) {
    return add(x, Tensor::full({}, values(x)[7] + static_cast<float>(x.dim(0))));
  });
  refuses("takes some samples of the batch",
          [](Module&, const Tensor& x) { return slice(x, 0, {.end = 1}); });
  refuses("exactly one extent must grow", [](Module&, const Tensor& x) {
    return reshape(x, {x.dim(0), x.dim(0), 12 / x.dim(0)});
  });
  refuses(
      "was not registered by add",
      [layer = std::make_shared<Linear>(4, 4)](Module&, const Tensor& x) { return (*layer)(x); });
  Sequential net{Linear{3, 2}};
  CHECK_THROWS_AS(trace(net, Tensor()), GraphError);
  CHECK_THROWS_AS(trace(net, random_tensor({2, 4}, 1)), ShapeError);
}

TEST_CASE("an operation that was registered by its name is kept", "[layers][trace]") {
  static const bool once = [] {
    register_operation({"cube_test", [](const Attributes& a, const Tensors& x) {
                          return cube(x[0], static_cast<float>(a.real("factor")));
                        }});
    return true;
  }();
  static_cast<void>(once);
  const Network net = traced([](Module&, const Tensor& x) { return cube(x, 1.5f); });
  CHECK(net.steps()[0].name == "cube_test");
  const test::TemporaryFolder folder;
  save_network(net, folder / "net");
  Network loaded = load_network(folder / "net");
  const Tensor x = random_tensor({3, 3, 4}, 2);
  CHECK(values(loaded(x)) == values(cube(x, 1.5f)));
}

TEST_CASE("an operation whose attributes do not say all is refused", "[layers][trace]") {
  // Registered with another factor than the module uses.
  static const bool once = [] {
    register_operation(
        {"scale_test", [](const Attributes&, const Tensors& x) { return cube(x[0], 1.0f); }});
    return true;
  }();
  static_cast<void>(once);
  class ScaleNode : public Node {
   public:
    std::string_view type() const override { return "scale_test"; }
    Tensors backward(Tensor grad_y) override { return {grad_y}; }
  };
  QUANTRAIN_CHECK_ERROR(traced([](Module&, const Tensor& x) {
                          Tensor y = Tensor::full(x.shape(), 2.0f);
                          return record<ScaleNode>(std::move(y), {x});
                        }),
                        GraphError,
                        "output 0 of the traced network differs");
}

}  // namespace quantrain::trace_tests
