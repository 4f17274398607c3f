#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/optim/adam.hpp"
#include "quant/analysis/parity.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/temporary_folder.hpp"

// The error messages for mistakes that are easy to make.
namespace quantrain::quant {
namespace {

using test::mlp;
using test::random_images;

/// Runs a function between two linear layers of 12 features.
class Between : public Module {
 public:
  explicit Between(std::function<Tensor(const Tensor&)> function)
      : function_(std::move(function)),
        first_(add("first", Linear{12, 12})),
        last_(add("last", Linear{12, 4})) {}
  std::string_view type() const override { return "Between"; }

 protected:
  Tensor forward(const Tensor& x) override { return (*last_)(function_((*first_)(x))); }

 private:
  std::function<Tensor(const Tensor&)> function_;
  std::shared_ptr<Linear> first_;
  std::shared_ptr<Linear> last_;
};

/// An operation whose author forgot to call record().
Tensor unrecorded(const Tensor& x) {
  Tensor y = Tensor::empty(x.shape());
  for (int64_t i = 0; i < x.elements(); ++i) y.mutable_data()[i] = 2.0f * x.floats()[i];
  return y;
}

class Unrecorded : public Module {
 public:
  std::string_view type() const override { return "Unrecorded"; }

 protected:
  Tensor forward(const Tensor& x) override { return unrecorded(x); }
};

/// prelu(x, slope) as a layer.
class Slopes : public Module {
 public:
  std::string_view type() const override { return "Slopes"; }

 protected:
  Tensor forward(const Tensor& x, const Tensor& slope) override { return prelu(x, slope); }
};

/// A PReLU whose slope is the mean of its input; for a batch of one.
class OwnSlope : public Module {
 public:
  OwnSlope() : mean_(add("mean", Mean{1})), prelu_(add("prelu", Slopes{})) {}
  std::string_view type() const override { return "OwnSlope"; }

 protected:
  Tensor forward(const Tensor& x) override { return (*prelu_)(x, (*mean_)(x)); }

 private:
  std::shared_ptr<Mean> mean_;
  std::shared_ptr<Slopes> prelu_;
};

class PlainMember : public Module {
 public:
  std::string_view type() const override { return "PlainMember"; }

 protected:
  Tensor forward(const Tensor& x) override { return fc_(x); }

 private:
  Linear fc_{12, 4};
};

const QConfig kConfig = QConfig::int8();

Tensor example() { return random_images({2, 12}, 1); }

}  // namespace

TEST_CASE("an error names a forgotten record() and the operation that reads the unrecorded tensor",
          "[quant][messages]") {
  Unrecorded alone;
  QUANTRAIN_CHECK_ERROR(prepare_qat(alone, example(), kConfig),
                        GraphError,
                        "[Unrecorded] the output does not depend on the network's input in the "
                        "recorded graph: an earlier operation made a new tensor without recording "
                        "it; end that operation with return record<ItsNode>(y, {x})");
  Between net(unrecorded);
  QUANTRAIN_CHECK_ERROR(
      prepare_qat(net, example(), kConfig),
      GraphError,
      "[last] the input of operation linear does not depend on the network's input");
}

TEST_CASE("the error for an addition that no layer supports does not suggest the layer Add",
          "[quant][messages]") {
  Between constant([](const Tensor& x) { return x + Tensor::full(x.shape(), 3.0f); });
  QUANTRAIN_CHECK_ERROR(prepare_qat(constant, example(), kConfig),
                        GraphError,
                        "[Between] this addition of a constant has no integer form: [2, 12] + [2, "
                        "12]; a constant operand must be "
                        "one number, or one for each channel");
  Between row([](const Tensor& x) { return x + reshape(mean(x, 1), {2, 1}); });
  QUANTRAIN_CHECK_ERROR(prepare_qat(row, example(), kConfig),
                        GraphError,
                        "[Between] this addition that broadcasts has no integer form: [2, 12] + ");
  Between scalar([](const Tensor& x) { return x + 3.0f; });
  QUANTRAIN_CHECK_ERROR(prepare_qat(scalar, example(), kConfig),
                        GraphError,
                        "[Between] operation add of [2, 12] in its forward() has no place for a "
                        "FakeQuantize: run it in a layer of its own, registered by add(name, "
                        "layer) in the constructor");
}

TEST_CASE("parameters of an operation are not taken for constants", "[quant][messages]") {
  const Tensor ones = Tensor::full({12}, 1.0f);
  Between norm(
      [&](const Tensor& x) { return batch_norm(x, ones, ones, ones, ones, {.training = false}); });
  QUANTRAIN_CHECK_ERROR(prepare_qat(norm, example(), kConfig),
                        GraphError,
                        "[Between] operation batch_norm of [2, 12] in its forward() has no place "
                        "for a FakeQuantize: use the layer BatchNorm1d or BatchNorm2d");
  Between slopes([&](const Tensor& x) { return prelu(x, ones); });
  QUANTRAIN_CHECK_ERROR(prepare_qat(slopes, example(), kConfig),
                        GraphError,
                        "[Between] operation prelu of [2, 12] in its forward() has no place for a "
                        "FakeQuantize: use the layer PReLU");
}

TEST_CASE("an error about slopes that depend on the input suggests the layer PReLU",
          "[quant][messages]") {
  const std::string text =
      " that depend on the network's input have no integer form: use the layer PReLU, where "
      "the slopes are a parameter";
  const Tensor one = random_images({1, 12}, 1);
  Between function([](const Tensor& x) { return prelu(x, reshape(x, {12})); });
  QUANTRAIN_CHECK_ERROR(
      prepare_qat(function, one, kConfig), GraphError, "[Between] slopes [12]" + text);
  Sequential layer{Linear{12, 12}, OwnSlope{}, Linear{12, 4}};
  QUANTRAIN_CHECK_ERROR(
      prepare_ptq(layer, one, kConfig), GraphError, "[1.prelu] slopes [1]" + text);
}

TEST_CASE("an error about an operation in forward() names the class and suggests add(name, layer)",
          "[quant][messages]") {
  Between twice([](const Tensor& x) { return x + x; });
  QUANTRAIN_CHECK_ERROR(prepare_qat(twice, example(), kConfig),
                        GraphError,
                        "[Between] operation add of [2, 12] and [2, 12] in its forward() has no "
                        "place for a FakeQuantize: use the layer Add, registered by add(name, "
                        "layer) in the constructor");
  PlainMember plain;
  QUANTRAIN_CHECK_ERROR(prepare_qat(plain, example(), kConfig),
                        GraphError,
                        "[PlainMember] operation linear of [2, 12] in its forward() has no place "
                        "for a FakeQuantize: use the layer Linear, registered by add(name, layer)");
  QUANTRAIN_CHECK_ERROR(Adam(plain.parameters()),
                        DataError,
                        "[adam] there are no parameters: pass net.parameters(); a module's "
                        "parameters are those of the layers that its constructor registers by "
                        "add(name, layer), not those of plain members");
  Sequential net = mlp();
  QUANTRAIN_CHECK_ERROR(
      convert(net, example()), GraphError, "[Sequential] the network is not prep");
  prepare_qat(net, example(), kConfig);
  QUANTRAIN_CHECK_ERROR(
      prepare_qat(net, example(), kConfig), GraphError, "[Sequential] the network is prepared al");
}

TEST_CASE("an error about an undefined example names the function or network that got it",
          "[quant][messages]") {
  Sequential net = mlp();
  const Tensor none;
  const auto says = [](const char* where) {
    return '[' + std::string(where) + "] example 0 is undefined: give a batch [N, ...]";
  };
  QUANTRAIN_CHECK_ERROR(prepare_qat(net, none, kConfig), GraphError, says("prepare_qat"));
  QUANTRAIN_CHECK_ERROR(prepare_ptq(net, none, kConfig), GraphError, says("prepare_ptq"));
  QUANTRAIN_CHECK_ERROR(convert(net, none), GraphError, says("convert"));
  QUANTRAIN_CHECK_ERROR(plan(net, none), GraphError, says("plan"));
  QUANTRAIN_CHECK_ERROR(summary(net, none), GraphError, says("summary"));
  QUANTRAIN_CHECK_ERROR(net(none), GraphError, "[Sequential] the input is undefined");
  prepare_ptq(net, example(), kConfig);
  QUANTRAIN_CHECK_ERROR(calibrate(net, none), GraphError, "[Sequential] the input is undefined");
  calibrate(net, example());
  const IntegerModel model = convert(net, example());
  QUANTRAIN_CHECK_ERROR(
      verify_parity(net, model, none), GraphError, "[parity] batch 0 is undefined");
}

TEST_CASE("an error about a float network's file says when to load it", "[quant][messages]") {
  const quantrain::test::TemporaryFolder folder;
  Sequential net = mlp();
  save(net, folder / "float");
  Sequential prepared = mlp();
  prepare_qat(prepared, example(), kConfig);
  save(prepared, folder / "prepared");
  QUANTRAIN_CHECK_ERROR(load(prepared, folder / "float"),
                        DataError,
                        "/float: comes from a float network, but this network is prepared for "
                        "quantization: load the file before prepare_qat or prepare_ptq");
  QUANTRAIN_CHECK_ERROR(load(net, folder / "prepared"),
                        DataError,
                        "/prepared: comes from a network prepared for quantization, but this "
                        "network is not prepared: first prepare it in the same way");
}

TEST_CASE("a layer whose name begins with a slot's name is not taken for a slot",
          "[quant][messages]") {
  const quantrain::test::TemporaryFolder folder;
  const auto make = [] {
    Sequential net;
    net.add("input_slot_a", Linear{12, 9});
    net.add("output_slot2", Linear{9, 4});
    return net;
  };
  Sequential net = make();
  save(net, folder / "float");
  load(net, folder / "float");
  Sequential prepared = make();
  prepare_qat(prepared, example(), kConfig);
  QUANTRAIN_CHECK_ERROR(load(prepared, folder / "float"), DataError, "comes from a float network");
}

TEST_CASE("an error about parameters of a wrong type names their layer", "[quant][messages]") {
  Sequential net{Sequential{Linear{12, 9}, ReLU{}}, Linear{9, 4}};
  prepare_qat(net, example(), kConfig);
  const QParams wrong{{.bits = 4}, -1, {1.0f}, {0}};
  const QParams invalid{{.bits = 8}, -1, {0.0f}, {0}};
  QUANTRAIN_CHECK_ERROR(
      output_quantizer(net, "0.1").update_params(wrong),
      QuantError,
      "[0.1] parameters (u4 scale 1 zero point 0) do not fit: expected type u8 with 1 ");
  QUANTRAIN_CHECK_ERROR(output_quantizer(net, "0.1").update_params(invalid), QuantError, "[0.1] ");
  QUANTRAIN_CHECK_ERROR(
      weight_quantizer(net, "0.0").set_params(wrong),
      QuantError,
      "[0.0] parameters (u4 scale 1 zero point 0) do not fit: expected type s8 narrow with 9 ");
  QUANTRAIN_CHECK_ERROR(
      output_quantizer(net, "0.1").params(), QuantError, "[0.1] FakeQuantize has");
  QUANTRAIN_CHECK_ERROR(
      FakeQuantize().update_params(wrong), QuantError, "[FakeQuantize] parameters (u4");
}

}  // namespace quantrain::quant
