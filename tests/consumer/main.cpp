#include <cstdio>
#include <vector>

#include "framework/autograd/node.hpp"
#include "framework/core/version.hpp"
#include "layers/layers.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"

using namespace quantrain;

// Prepares a network for post-training quantization, calibrates it, and runs it on integers.
int main() {
  Sequential net{Conv2d{1, 4}, ReLU{}, MaxPool2d{2}, Flatten{}, Linear{4 * 3 * 3, 3}};
  const Tensor images = Tensor::full({2, 8, 8, 1}, 0.5f);

  quant::QConfig config = quant::QConfig::int8();
  config.input_range = Range{0.0f, 1.0f};
  quant::prepare_ptq(net, images, config);
  quant::calibrate(net, images);
  const quant::IntegerModel model = quant::convert(net, images);

  const std::vector<uint8_t> bytes(2 * 8 * 8, 128);
  std::vector<int32_t> classes(2, -1);
  model.classify_codes(bytes, classes);
  std::printf("quantrain %s\n", version());
  return classes[0] >= 0 && classes[0] == classes[1] ? 0 : 1;
}
