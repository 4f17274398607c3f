// Means and maxima over axes: pools of an image that has the axes as columns.
#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "quant/lowering/convert.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"

namespace quantrain::quant {
namespace {

using test::check_on_every_isa;
using test::check_parity;
using test::random_images;
using test::train_a_little;

/// Runs the operation mean in a layer of its own.
class MeanOfSteps : public Module {
 public:
  std::string_view type() const override { return "MeanOfSteps"; }

 protected:
  Tensor forward(const Tensor& x) override { return mean(x, 1); }
};

}  // namespace

TEST_CASE("means and maxima over axes convert to pools that equal the simulation",
          "[quant][reduction]") {
  struct Case {
    std::vector<int> axes;
    int64_t features;
  };
  const int bits = GENERATE(8, 3);
  const Tensor example = random_images({2, 6, 7, 1}, 1);
  for (const Case& c :
       {Case{{1}, 35}, Case{{2}, 30}, Case{{3}, 42}, Case{{1, 2}, 5}, Case{{2, 3}, 6}}) {
    for (const bool mean : {true, false}) {
      CAPTURE(bits, mean, c.features);
      Sequential net{Conv2d{1, 5, {.padding = 1}}, ReLU{}};
      if (mean) net.append(Mean{c.axes});
      if (!mean) net.append(Max{c.axes});
      // Fused with the mean, through the reshape.
      net.append(ReLU6{});
      net.append(Flatten{});
      net.append(Linear{c.features, 4});
      prepare_qat(net, example, QConfig::bits(bits, bits));
      train_a_little(net, {6, 6, 7, 1}, 3);
      CHECK(plan(net, example).convertible());
      const IntegerModel model = convert(net, example);
      int pools = 0;
      for (const integer::Step& step : model.program().steps) {
        pools += type(step.operation) == (mean ? "quantized_avg_pool2d" : "quantized_max_pool2d");
      }
      CHECK(pools == 1);
      check_on_every_isa(net, model, example, random_images({40, 6, 7, 1}, 9));
    }
  }
}

TEST_CASE("the operation mean is sent to the layer Mean", "[quant][reduction]") {
  const Tensor example = random_images({2, 6, 7, 1}, 1);
  Sequential net{Conv2d{1, 5, {.padding = 1}}, MeanOfSteps{}, Flatten{}, Linear{35, 4}};
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 6, 7, 1}, 2);
  QUANTRAIN_CHECK_ERROR(convert(net, example),
                        GraphError,
                        "[1] the operation mean of [2, 6, 7, 5] has no integer form: use the layer "
                        "Mean, over axes of each sample");
}

}  // namespace quantrain::quant
