// Means and maxima over axes convert to pools. The elements along these axes become the columns of
// an image, and each row of the image is one window.
#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "quant/export/c99/export_c99.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/fake_quantize.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::quant {
namespace {

using test::check_on_every_isa;
using test::last_output;
using test::random_images;
using test::train_a_little;

/// The operation mean as a layer.
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
      // This ReLU6 is fused with the pool, although the layer ends with a reshape.
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

TEST_CASE("the operation mean() has no integer form, and the error suggests the layer Mean",
          "[quant][reduction]") {
  const Tensor example = random_images({2, 6, 7, 1}, 1);
  Sequential net{Conv2d{1, 5, {.padding = 1}}, MeanOfSteps{}, Flatten{}, Linear{35, 4}};
  QUANTRAIN_CHECK_ERROR(prepare_qat(net, example, QConfig::int8()),
                        GraphError,
                        "[1] the operation mean of [2, 6, 7, 5] has no integer form: use the layer "
                        "Mean, over axes of each sample");
}

TEST_CASE("a mean over all axes of a sample has the shape [], also in files and in C",
          "[quant][reduction]") {
  for (const bool mean : {true, false}) {
    const Tensor example = random_images({2, 6, 7, 1}, 1);
    Sequential net{Conv2d{1, 5, {.padding = 1}}, ReLU{}};
    if (mean) net.append(Mean{{1, 2, 3}});
    if (!mean) net.append(Max{{1, 2, 3}});
    prepare_ptq(net, example, QConfig::int8());
    calibrate(net, {random_images({9, 6, 7, 1}, 2)});
    const IntegerModel model = convert(net, example);
    CHECK(last_output(model).shape == Shape{});
    check_on_every_isa(net, model, example, random_images({40, 6, 7, 1}, 9));
    const quantrain::test::TemporaryFolder folder;
    model.save(folder / "model");
    CHECK(IntegerModel::load(folder / "model").program() == model.program());
    const C99Sources sources = export_c99(model.program(), {.name = "net"});
    CHECK(sources.header.find("#define NET_OUTPUT_SIZE 1\n") != std::string::npos);
    // A single number has no classes.
    CHECK(sources.header.find("classify") == std::string::npos);
  }
}

TEST_CASE("means and maxima over axes too long for integers are errors that name the layer",
          "[quant][reduction]") {
  const QParams params{{.bits = 8}, -1, {0.05f}, {100}};
  struct Case {
    Shape shape;
    int axis;
    std::string text;
  };
  const Case cases[] = {
      {{1, 1100, 1000, 2},
       3,
       "the axes before the reduced axes have 1100000 elements in each sample"},
      {{1, 1100000, 2}, 1, "the reduced axes have 1100000 elements in each sample"},
      {{1, 2, 1100, 1000},
       1,
       "the axes after the reduced axes have 1100000 elements in each sample"}};
  const NoGrad no_grad;
  for (const Case& c : cases) {
    const Tensor floats = Tensor::full(c.shape, 1.0f);
    const Tensor codes = fake_quantize(floats, params);
    const std::string text = c.text + "; an integer network allows at most 1048576: x ";
    QUANTRAIN_CHECK_ERROR(Mean{c.axis}(codes), ShapeError, "[Mean] " + text);
    QUANTRAIN_CHECK_ERROR(Max{c.axis}(codes), ShapeError, "[Max] " + text);
    CHECK(Mean{c.axis}(floats).data()[0] == 1.0f);
    CHECK(Max{c.axis}(floats).data()[0] == 1.0f);
  }
}

}  // namespace quantrain::quant
