#include <functional>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"

// What has no integer form is refused when a network is prepared, with all reasons at once.
namespace quantrain::quant {
namespace {

using test::random_images;

using Prepare = void (*)(Module&, const Tensor&, const QConfig&);

/// A layer that computes this function.
class Applied : public Module {
 public:
  explicit Applied(std::function<Tensor(const Tensor&)> f) : f_(std::move(f)) {}
  std::string_view type() const override { return "Applied"; }

 protected:
  Tensor forward(const Tensor& x) override { return f_(x); }

 private:
  std::function<Tensor(const Tensor&)> f_;
};

/// Attention over the steps of [N, L, C], as it is usually written: one projection for queries and
/// keys, products, a softmax.
class Attention : public Module {
 public:
  explicit Attention(int64_t c)
      : project_(add("project", Linear{c, c})),
        values_(add("values", Linear{c, c})),
        softmax_(add("softmax", Softmax{})) {}
  std::string_view type() const override { return "Attention"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor queries = (*project_)(x);
    const Tensor keys = (*project_)(x);
    const Tensor scores = matmul(queries, transpose(keys, {0, 2, 1}));
    return matmul((*softmax_)(scores), (*values_)(x));
  }

 private:
  std::shared_ptr<Linear> project_, values_;
  std::shared_ptr<Softmax> softmax_;
};

/// What prepare says; "" if it throws nothing. Checks that nothing is plugged in after an error.
std::string refusal(Module& net,
                    const Tensor& example,
                    const QConfig& config = QConfig::int8(),
                    Prepare prepare = prepare_qat) {
  try {
    prepare(net, example, config);
  } catch (const GraphError& error) {
    CHECK(Plugged(net).empty());
    CHECK(net.slots().inputs.empty());
    return error.what();
  }
  return "";
}

/// Whether `text` contains all parts, in this order.
bool has(const std::string& text, const std::vector<std::string>& parts) {
  size_t at = 0;
  for (const std::string& part : parts) {
    at = text.find(part, at);
    if (at == std::string::npos) return false;
    at += part.size();
  }
  return true;
}

}  // namespace

TEST_CASE("a transposition is refused by prepare, unless its layer is left in float",
          "[quant][refusals]") {
  const Tensor example = random_images({2, 6, 4}, 1);
  const auto make = [] {
    return Sequential{Linear{4, 4},
                      Applied{[](const Tensor& x) {
                        return transpose(x, {0, 2, 1});
                      }},
                      Flatten{},
                      Linear{24, 3}};
  };
  for (const Prepare prepare : {Prepare{prepare_qat}, Prepare{prepare_ptq}}) {
    Sequential net = make();
    CHECK(refusal(net, example, QConfig::int8(), prepare) ==
          "[1] operation transpose has no integer form");
    QConfig config = QConfig::int8();
    config.layers["1"] = config.model;
    config.layers["1"].quantize = false;
    CHECK(refusal(net, example, config, prepare) == "");
    calibrate(net, example);
    CHECK_FALSE(plan(net, example).convertible());
    QUANTRAIN_CHECK_ERROR(
        convert(net, example), GraphError, "[1] operation transpose has no integer form");
  }
}

TEST_CASE("an attention block is refused with every reason at once", "[quant][refusals]") {
  const Tensor example = random_images({2, 6, 4}, 1);
  Sequential net{Linear{4, 4}, Attention{4}, Flatten{}, Linear{24, 3}};
  const std::string text = refusal(net, example);
  INFO(text);
  CHECK(has(text,
            {"[Sequential] 3 reasons why it cannot be quantized:\n",
             "  [1.project] the layer runs twice in one pass and would need two ranges",
             "\n  [1] operation transpose has no integer form",
             "\n  [1] operation matmul has no integer form",
             "\nLayerConfig::quantize = false"}));
}

TEST_CASE("all reasons are listed, of all kinds, each once", "[quant][refusals]") {
  const Tensor example = random_images({2, 6, 4}, 1);
  Sequential net{Linear{4, 4},
                 Applied{[](const Tensor& x) { return x - mean(x, 1, true); }},
                 Applied{[](const Tensor& x) {
                   return reshape(x, {12, 4});
                 }},
                 Applied{[](const Tensor& x) {
                   return reshape(log_softmax(x), {2, 6, 4});
                 }},
                 Applied{[](const Tensor& x) { return x + x; }},
                 Applied{[](const Tensor& x) {
                   return transpose(transpose(x, {0, 2, 1}), {0, 2, 1});
                 }},
                 Flatten{},
                 Linear{24, 3}};
  const std::string text = refusal(net, example);
  INFO(text);
  CHECK(has(text,
            {"5 reasons",
             "[1] the operation mean of [2, 6, 4] has no integer form",
             "[1] this subtraction has no integer form: [2, 6, 4] - [2, 1, 4]",
             "[2] a reshape of the batch axis has no integer form: [2, 6, 4] to [12, 4]",
             "[3] operation log_softmax has no integer form",
             "[5] operation transpose has no integer form"}));
}

TEST_CASE("a user's operation without an integer form is refused by prepare", "[quant][refusals]") {
  class MirrorNode : public Node {
   public:
    std::string_view type() const override { return "mirror"; }
    std::vector<Tensor> backward(Tensor grad_y) override { return {grad_y * -1.0f}; }
  };
  const auto mirror = [](const Tensor& x) {
    Tensor y = Tensor::empty(x.shape());
    const Floats from = x.floats();
    for (int64_t i = 0; i < x.elements(); ++i) y.mutable_data()[i] = -from[i];
    return record<MirrorNode>(y, {x});
  };
  const Tensor example = random_images({2, 12}, 1);
  Sequential net{Linear{12, 9}, Applied{mirror}, Linear{9, 9}, Applied{mirror}, Linear{9, 4}};
  // The second one reads codes again, because the Linear before it has a range of its own.
  const std::string text = refusal(net, example);
  INFO(text);
  CHECK(has(text,
            {"2 reasons",
             "[1] operation mirror has no integer form",
             "[3] operation mirror has no integer form"}));
  QConfig config = QConfig::int8();
  for (const char* layer : {"1", "3"}) {
    config.layers[layer] = config.model;
    config.layers[layer].quantize = false;
  }
  Sequential floats{Linear{12, 9}, Applied{mirror}, Linear{9, 9}, Applied{mirror}, Linear{9, 4}};
  CHECK(refusal(floats, example, config) == "");
}

TEST_CASE("bits and schemes that exist in simulation only are no reason to refuse",
          "[quant][refusals]") {
  const Tensor example = random_images({2, 12}, 1);
  QConfig wide = QConfig::int8();
  wide.model.activation.bits = 12;
  QConfig affine = QConfig::int8();
  affine.model.weight.scheme = QScheme::kAffine;
  QConfig floats = QConfig::int8();
  floats.types["Linear"] = floats.model;
  floats.types["Linear"].quantize = false;
  for (const QConfig& config : {wide, affine, floats}) {
    Sequential net{Linear{12, 9}, Tanh{}, Linear{9, 4}};
    CHECK(refusal(net, example, config) == "");
    calibrate(net, example);
    CHECK_FALSE(plan(net, example).convertible());
  }
}

TEST_CASE("an output layer without weights may stay in float", "[quant][refusals]") {
  const Tensor example = random_images({2, 12}, 1);
  QConfig config = QConfig::int8();
  config.layers["1"] = config.model;
  config.layers["1"].quantize = false;
  Sequential twice{Linear{12, 9}, Applied{[](const Tensor& x) { return x + x; }}};
  CHECK(refusal(twice, example, config) == "");
  Sequential norm{Linear{12, 9}, BatchNorm1d{9}, ReLU{}, BatchNorm1d{9}};
  config.layers.erase("1");
  config.layers["3"] = config.model;
  config.layers["3"].quantize = false;
  CHECK(refusal(norm, example, config) == "");
}

}  // namespace quantrain::quant
