#include "layers/summary.hpp"

#include <sstream>

#include "framework/core/error.hpp"
#include "layers/layers.hpp"
#include "tests/catch.hpp"

namespace quantrain {
namespace {

Sequential small_net() {
  return Sequential{Conv2d{2, 4, {.kernel = 3, .padding = 1, .groups = 2}},
                    BatchNorm2d{4},
                    ReLU{},
                    MaxPool2d{2},
                    Flatten{},
                    Sequential{Linear{16, 3, {.bias = false}}}};
}

}  // namespace

TEST_CASE("a summary lists shape, parameters and multiply-adds of each layer",
          "[layers][summary]") {
  Sequential net = small_net();
  const Summary result = summary(net, Tensor::zeros({5, 4, 4, 2}));
  REQUIRE(result.layers.size() == 6);
  const LayerSummary& conv = result.layers[0];
  CHECK(conv.name == "0");
  CHECK(conv.type == "Conv2d");
  CHECK(conv.output == std::vector<int64_t>{5, 4, 4, 4});
  CHECK(conv.parameters == 4 * 9 + 4);
  CHECK(conv.multiply_adds == 4 * 4 * 4 * 9);
  CHECK(result.layers[1].parameters == 8);
  CHECK(result.layers[3].output == std::vector<int64_t>{5, 2, 2, 4});
  CHECK(result.layers[5].name == "5.0");
  CHECK(result.layers[5].multiply_adds == 16 * 3);
  CHECK(result.parameters == 40 + 8 + 48);
  CHECK(result.multiply_adds == 576 + 48);
}

TEST_CASE("the summary of a part of a network equals that of the part built alone",
          "[layers][summary]") {
  Sequential net;
  const auto part = net.add("part", small_net());
  Sequential alone = small_net();
  const Tensor example = Tensor::zeros({5, 4, 4, 2});
  std::ostringstream of_part;
  of_part << summary(*part, example);
  std::ostringstream of_alone;
  of_alone << summary(alone, example);
  CHECK(of_part.str() == of_alone.str());
}

TEST_CASE("a summary leaves modes and statistics as they were", "[layers][summary]") {
  Sequential net = small_net();
  net.find("2").eval();
  summary(net, Tensor::full({1, 4, 4, 2}, 1.0f));
  CHECK(net.training());
  CHECK_FALSE(net.find("2").training());
  for (const NamedState& buffer : net.named_buffers()) {
    if (buffer.name == "1.running_mean") CHECK(buffer.tensor.data()[0] == 0.0f);
  }
}

TEST_CASE("a summary prints one line for each layer and the totals", "[layers][summary]") {
  Sequential net{Flatten{}, Linear{6, 1000}};
  std::ostringstream text;
  text << summary(net, Tensor::zeros({1, 2, 3}));
  CHECK(text.str() ==
        "layer  type     output     parameters  multiply-adds\n"
        "0      Flatten  [1, 6]              0              0\n"
        "1      Linear   [1, 1000]       7,000          6,000\n"
        "total                           7,000          6,000\n");
}

TEST_CASE("a summary takes a list of examples", "[layers][summary]") {
  class Heads : public Module {
   public:
    std::string_view type() const override { return "Heads"; }

   protected:
    std::vector<Tensor> forward(const std::vector<Tensor>& x) override {
      return {(*a_)(x[0]), (*b_)(x.back())};
    }

   private:
    std::shared_ptr<Linear> a_ = add("a", Linear{6, 2});
    std::shared_ptr<Linear> b_ = add("b", Linear{6, 3});
  };
  Heads net;
  const Tensor x = Tensor::zeros({2, 6});
  CHECK(summary(net, std::vector{x, x}).parameters == 35);
  CHECK(summary(net, x).multiply_adds == 30);
  QUANTRAIN_CHECK_ERROR(summary(net, std::vector<Tensor>{}), ShapeError, "there is no example");
}

TEST_CASE("a summary needs an example with a batch", "[layers][summary]") {
  Sequential net{ReLU{}};
  QUANTRAIN_CHECK_ERROR(
      summary(net, Tensor::zeros({0, 2})), ShapeError, "[summary] each example must be a batch");
}

}  // namespace quantrain
