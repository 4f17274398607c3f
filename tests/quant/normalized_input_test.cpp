#include <cmath>

#include "framework/core/random.hpp"
#include "framework/data/sample_array.hpp"
#include "layers/layers.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/tensors.hpp"

// Networks that were trained on normalized images, on bytes.
namespace quantrain::quant {
namespace {

using quantrain::test::values;

constexpr float kMean = 0.1307f, kDeviation = 0.3081f;  // torchvision's numbers for MNIST
const Shape kImages{64, 10, 10, 1};

std::vector<uint8_t> image_bytes() {
  std::vector<uint8_t> bytes;
  Random random(9);
  for (int64_t i = 0; i < kImages.elements(); ++i) {
    // Mostly background, like digits.
    const bool ink = random.uniform(0.0f, 1.0f) < 0.2f;
    bytes.push_back(static_cast<uint8_t>(ink ? random.below(256) : random.below(8)));
  }
  return bytes;
}

Tensor batch(const SampleArray& images) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < images.size(); ++i) all.push_back(i);
  return images.tensor(all);
}

float normalized(uint8_t byte) {
  return static_cast<float>((byte / 255.0 - static_cast<double>(kMean)) /
                            static_cast<double>(kDeviation));
}

/// The outputs of the network on exact z.
std::vector<float> float_outputs(Sequential& net, const std::vector<uint8_t>& bytes) {
  std::vector<float> z;
  for (const uint8_t byte : bytes) z.push_back(normalized(byte));
  net.eval();
  return values(net(Tensor::from(kImages, z)));
}

double rms(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += difference * difference;
  }
  return std::sqrt(sum / static_cast<double>(a.size()));
}

/// The outputs of the deployed network, after PTQ on these images.
std::vector<float> deployed_outputs(Sequential& net, const Tensor& images) {
  prepare_ptq(net, images, QConfig{});
  calibrate(net, images);
  const IntegerModel model = convert(net, images);
  test::check_parity(net, model, images);
  const std::vector<float> raw = values(images);
  std::vector<float> y(static_cast<size_t>(kImages[0] * model.output_size()));
  model.run(raw, y);
  return y;
}

Sequential unpadded() {
  manual_seed(11);
  return Sequential{Conv2d{1, 8, {.kernel = 3}}, ReLU{}, Flatten{}, Linear{512, 4}};
}

}  // namespace

TEST_CASE("folded normalization needs no shift of the input", "[quant][normalization]") {
  const std::vector<uint8_t> bytes = image_bytes();
  const Range range{normalized(0), normalized(255)};
  // The code of z = 0 is byte 33; the mean is byte 33.3.
  const SampleArray shifted = SampleArray::bytes(kImages, bytes, range);
  CHECK(shifted.params().zero_point[0] == 33);
  const SampleArray plain = SampleArray::bytes(kImages, bytes);

  Sequential as_trained = unpadded(), folded = unpadded();
  const std::vector<float> exact = float_outputs(as_trained, bytes);
  fold_normalization(folded, batch(plain), {{kMean}, {kDeviation}});
  const double input_error = rms(values(as_trained(batch(shifted))), exact);
  folded.eval();
  const double folded_error = rms(values(folded(batch(plain))), exact);
  CAPTURE(input_error, folded_error);
  CHECK(folded_error < 2e-6);
  CHECK(input_error > 100 * folded_error);

  const double shifted_integers = rms(deployed_outputs(as_trained, batch(shifted)), exact);
  const double folded_integers = rms(deployed_outputs(folded, batch(plain)), exact);
  CAPTURE(shifted_integers, folded_integers);
  CHECK(folded_integers < shifted_integers);
}

TEST_CASE("a channel of ones deploys exactly", "[quant][normalization]") {
  manual_seed(12);
  Sequential net{OnesChannel{},
                 Conv2d{2, 6, {.kernel = 3, .padding = 1, .bias = false}},
                 BatchNorm2d{6},
                 ReLU{},
                 Flatten{},
                 Linear{600, 4}};
  Tensor weight = dynamic_cast<Conv2d&>(net.find("1")).weight();
  for (int64_t i = 1; i < weight.elements(); i += 2) weight.mutable_data()[i] = 0.0f;  // the ones'
  const std::vector<uint8_t> bytes = image_bytes();
  const Tensor images = batch(SampleArray::bytes(kImages, bytes));
  fold_normalization(net, images, {{kMean}, {kDeviation}});
  net.eval();
  const std::vector<float> exact = values(net(images));
  const double scale = rms(exact, std::vector<float>(exact.size(), 0.0f));
  CHECK(rms(deployed_outputs(net, images), exact) < 0.05 * scale);
}

}  // namespace quantrain::quant
