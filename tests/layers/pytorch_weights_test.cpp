#include "layers/pytorch_weights.hpp"

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/io/safetensors.hpp"
#include "layers/layers.hpp"
#include "tests/floats.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"
#include "tests/vectors.hpp"

// The files and outputs come from PyTorch: tests/reference/make_networks.py.
namespace quantrain {
namespace {

using test::check_close;
using test::load_vectors;
using test::to_tensor;
using test::values;

// Sums of up to 100 products, each rounded to float32; the largest outputs are about 10.
constexpr test::Tolerance kRounding{.margin = 2e-5, .epsilon = 1e-5};

std::string file_of(const std::string& name) {
  return std::string(QUANTRAIN_TEST_DATA) + "/pytorch/" + name + ".safetensors";
}

test::Json case_of(const char* name) { return load_vectors(name, "pytorch/networks.json"); }

Sequential image_network() {
  return Sequential{Conv2d{2, 4, {.padding = 1}},
                    BatchNorm2d{4},
                    ReLU{},
                    MaxPool2d{2},
                    Conv2d{4, 8, {.kernel = {2, 1}, .groups = 4}},
                    PReLU{8},
                    Flatten{},
                    BatchNorm1d{32},
                    PReLU{32},
                    Dropout{},
                    Linear{32, 32},
                    ReLU{},
                    Linear{32, 3}};
}

Sequential autoencoder() {
  return Sequential{Conv2d{1, 3, {.padding = 1}},
                    Flatten{},
                    Linear{72, 5},
                    ReLU{},
                    Linear{5, 24},
                    BatchNorm1d{24},
                    ReLU{},
                    Reshape{{2, 3, 4}},
                    Upsample{2},
                    Conv2d{4, 1, {.padding = 1}}};
}

Sequential signal_network() {
  return Sequential{Conv1d{3, 4, {.kernel = 3, .stride = 2, .bias = false}},
                    BatchNorm1d{4},
                    Tanh{},
                    Flatten{},
                    Linear{20, 2}};
}

Sequential padded_network() {
  return Sequential{Conv2d{1, 3, {.padding = 1}}, ReLU{}, Flatten{}, Linear{60, 4}};
}

class TwoBranches : public Module {
 public:
  std::string_view type() const override { return "TwoBranches"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor a = flatten(relu((*a_)(x)));
    const Tensor b = flatten((*b_)(x));
    return (*out_)(concat({a + (*rows_)(b), b}, 1));
  }

 private:
  std::shared_ptr<Conv2d> a_ = add("a", Conv2d{2, 3, {.kernel = 3}});
  std::shared_ptr<Conv2d> b_ = add("b", Conv2d{2, 2, {.kernel = 1}});
  std::shared_ptr<Linear> rows_ = add("rows", Linear{60, 36});
  std::shared_ptr<Linear> out_ = add("out", Linear{96, 4});
};

void check_network(Module& net, const char* name, const std::string& file) {
  CAPTURE(file);
  const test::Json expected = case_of(name);
  const Tensor x = to_tensor(expected.at("x"));
  load_pytorch(net, x, file_of(file));
  net.eval();
  check_close(net(x), expected.at("y"), kRounding);
}

std::vector<float> state_values(const Module& net) {
  std::vector<float> all;
  for (const NamedState& entry : state(net)) {
    const std::vector<float> own = values(entry);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

}  // namespace

TEST_CASE("a network with PyTorch's weights gives PyTorch's outputs", "[layers][pytorch]") {
  for (const char* const file : {"image", "image_f16", "image_bf16"}) {
    Sequential net = image_network();
    check_network(net, "image", file);
  }
  Sequential decoder = autoencoder();
  check_network(decoder, "autoencoder", "autoencoder");
  Sequential signal = signal_network();
  check_network(signal, "signal", "signal");
  TwoBranches branches;
  check_network(branches, "branches", "branches");
  Sequential padded = padded_network();
  check_network(padded, "padded", "padded");
}

TEST_CASE("a network that was trained on normalized images takes them as they are",
          "[layers][pytorch]") {
  const test::Json expected = case_of("normalized");
  const Tensor x = to_tensor(expected.at("x"));
  Sequential net{OnesChannel{},
                 Sequential{Conv2d{2, 3, {.padding = 1}}, ReLU{}, Flatten{}, Linear{60, 4}}};
  load_pytorch(net, x, file_of("padded"), {.names = {{"1", ""}}});
  fold_normalization(net,
                     x,
                     {.mean = {expected.at("mean").get<float>()},
                      .deviation = {expected.at("deviation").get<float>()}});
  check_close(net(x), expected.at("y"), kRounding);
}

TEST_CASE("names of modules and entries map to PyTorch's", "[layers][pytorch]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "named.safetensors";
  TensorFile file;
  file.add<float>("body.first.weight", {2, 2}, std::vector<float>{1, 2, 3, 4});
  file.add<float>("body.first.bias", {2}, std::vector<float>{5, 6});
  file.add<float>("body.w", {1, 2}, std::vector<float>{7, 8});
  file.add<float>("body.b", {1}, std::vector<float>{9});
  file.add<float>("head.extra", {1}, std::vector<float>{1});
  save_safetensors(path, file);
  Sequential net{Linear{2, 2}, Linear{2, 1}};
  const Tensor x = Tensor::full({1, 2}, 1.0f);
  const std::map<std::string, std::string> names{
      {"", "body"}, {"0", "body.first"}, {"1.weight", "body.w"}, {"1.bias", "body.b"}};
  QUANTRAIN_CHECK_ERROR(
      load_pytorch(net, x, path, {.names = names}), DataError, "has \"head.extra\", which");
  load_pytorch(net, x, path, {.names = names, .ignored = {"head"}});
  CHECK(state_values(net) == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("a PyTorch file that does not fit changes nothing, and the message names it all",
          "[layers][pytorch]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "net.safetensors";
  const Tensor x = Tensor::full({1, 2}, 1.0f);
  Sequential net{Linear{2, 2}, Linear{2, 1}};
  const std::vector<float> before = state_values(net);
  const auto check = [&](const TensorFile& file, const std::string& part) {
    save_safetensors(path, file);
    QUANTRAIN_CHECK_ERROR(load_pytorch(net, x, path), DataError, part);
    CHECK(state_values(net) == before);
  };
  TensorFile first;
  first.add<float>("0.weight", {2, 2}, std::vector<float>{1, 2, 3, 4});
  first.add<float>("0.bias", {2}, std::vector<float>{1, 2});
  TensorFile file = first;
  file.add<float>("fc.weight", {1, 2}, std::vector<float>{1, 2});
  check(file, "has no \"1.weight\", \"1.bias\"; it has \"fc.weight\", which");
  file = first;
  file.add<float>("1.weight", {1, 2}, std::vector<float>{1, test::kNan});
  file.add<float>("1.bias", {1}, std::vector<float>{1});
  check(file, "\"1.weight\" contains");
  file = first;
  file.add<int32_t>("1.weight", {1, 2}, std::vector<int32_t>{1, 2});
  file.add<float>("1.bias", {1}, std::vector<float>{1});
  check(file, "\"1.weight\"");

  file = first;
  file.add<float>("1.weight", {2, 1}, std::vector<float>{1, 2});
  file.add<float>("1.bias", {1}, std::vector<float>{1});
  save_safetensors(path, file);
  QUANTRAIN_CHECK_ERROR(load_pytorch(net, x, path), ShapeError, "\"1.weight\" is [2, 1]");
  CHECK(state_values(net) == before);
  write_file(path, std::string("PK\3\4") + std::string(100, 'x'));
  QUANTRAIN_CHECK_ERROR(load_pytorch(net, x, path), DataError, "safetensors.torch.save_file");
  QUANTRAIN_CHECK_ERROR(load_pytorch(net, x, folder / "none"), DataError, "none");
  QUANTRAIN_CHECK_ERROR(load_pytorch(net, Tensor(), path), GraphError, "example");
}

TEST_CASE("an order of features that cannot be known is an error that names the layer",
          "[layers][pytorch]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "net.safetensors";
  TensorFile file;
  file.add<float>("2.weight", {1, 8}, std::vector<float>(8, 1.0f));
  file.add<float>("2.bias", {1}, std::vector<float>{1});
  save_safetensors(path, file);
  Sequential sliced{Flatten{}, Slice{1, {.end = 8}}, Linear{8, 1}};
  const Tensor image = Tensor::full({1, 2, 3, 2}, 1.0f);
  QUANTRAIN_CHECK_ERROR(load_pytorch(sliced, image, path), GraphError, "slice 1");
  Sequential reversed{Flatten{}, Slice{1, {.step = -1}}, Linear{12, 1}};
  file = {};
  file.add<float>("2.weight", {1, 12}, std::vector<float>(12, 1.0f));
  file.add<float>("2.bias", {1}, std::vector<float>{1});
  save_safetensors(path, file);
  QUANTRAIN_CHECK_ERROR(load_pytorch(reversed, image, path), GraphError, "slice 1");

  const auto shared = std::make_shared<Linear>(12, 1);
  class Twice : public Module {
   public:
    explicit Twice(const Linear& linear)
        : image_(add("image", Linear{linear.weight(), linear.bias()})),
          rows_(add("rows", Linear{linear.weight(), linear.bias()})) {}
    std::string_view type() const override { return "Twice"; }

   protected:
    Tensor forward(const Tensor& x) override {
      return (*image_)(flatten(x)) + (*rows_)(mean(x * x) + Tensor::full({1, 12}, 1.0f));
    }

   private:
    std::shared_ptr<Linear> image_, rows_;
  };
  Twice twice(*shared);
  TensorFile weights;
  weights.add<float>("image.weight", {1, 12}, std::vector<float>(12, 1.0f));
  weights.add<float>("image.bias", {1}, std::vector<float>{1});
  save_safetensors(path, weights);
  QUANTRAIN_CHECK_ERROR(load_pytorch(twice, image, path), GraphError, "in another order");
}

}  // namespace quantrain
