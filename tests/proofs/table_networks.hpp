#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "examples/common/flags.hpp"
#include "examples/common/task.hpp"
#include "examples/data/bearing_clips.hpp"
#include "examples/data/keywords.hpp"
#include "examples/networks.hpp"
#include "examples/tiny_networks.hpp"
#include "framework/core/random.hpp"
#include "framework/data/tensor_dataset.hpp"
#include "framework/integer/integer_model.hpp"
#include "layers/init.hpp"
#include "layers/layers.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"

// The networks of docs/accuracy.md: the examples', and for images [N, 28, 28, 1] of ten classes
// also those for which others have published accuracies at few bits.
namespace quantrain::proofs {

/// Three hidden layers of this width, as in TFC (64), SFC (256) and LFC (1024).
/// Source: Umuroglu et al. 2017, "FINN"; Blott et al. 2018
template <int64_t kWidth>
Sequential three_layers() {
  return Sequential{Flatten{},
                    examples::dense_block(784, kWidth),
                    examples::dense_block(kWidth, kWidth),
                    examples::dense_block(kWidth, kWidth),
                    Linear{kWidth, 10}};
}

/// Convolution, batch norm and ReLU.
inline Sequential conv_block(int64_t in, int64_t out, const Conv2d::Options& options) {
  return Sequential{Conv2d{in, out, options}, BatchNorm2d{out}, ReLU{}};
}

/// LeNet-5 with 20 and 50 channels and 500 hidden units, 0.43 million weights; with batch norm.
/// Source: LeCun et al. 1998, in the widths of Rastegari et al. 2016, "XNOR-Net", and others
inline Sequential lenet5() {
  const Conv2d::Options five{.kernel = 5, .bias = false};
  return Sequential{conv_block(1, 20, five),  // [N, 28, 28, 1] -> [N, 24, 24, 20]
                    MaxPool2d{2},
                    conv_block(20, 50, five),  // -> [N, 8, 8, 50]
                    MaxPool2d{2},
                    Flatten{},
                    examples::dense_block(800, 500),
                    Linear{500, 10}};
}

/// Five convolutions of 64 and 128 channels, 0.42 million weights: wide layers, which binary
/// weights need, and pools after the activations.
inline Sequential wide_cnn() {
  const Conv2d::Options three{.kernel = 3, .padding = 1, .bias = false};
  return Sequential{conv_block(1, 64, three),
                    conv_block(64, 64, three),
                    MaxPool2d{2},  // -> [N, 14, 14, 64]
                    conv_block(64, 128, three),
                    conv_block(128, 128, three),
                    MaxPool2d{2},  // -> [N, 7, 7, 128]
                    conv_block(128, 128, three),
                    MaxPool2d{2},  // -> [N, 3, 3, 128]
                    Flatten{},
                    Linear{1152, 10}};
}

/// y = max(x, 0), with a range and bits of its own. A ReLU after a sum shares those of the sum.
inline Clamp rectifier() { return {0.0f, std::numeric_limits<float>::infinity()}; }

/// y = x + norm(conv(max(x, 0))), shapes unchanged.
class BinaryResidual : public Module {
 public:
  explicit BinaryResidual(int64_t channels)
      : rectifier_(add("rectifier", rectifier())),
        branch_(add("branch",
                    Sequential{
                        Conv2d{channels, channels, {.kernel = 3, .padding = 1, .bias = false}},
                        BatchNorm2d{channels},
                    })),
        sum_(add("sum", Add{})) {}

  std::string_view type() const override { return "BinaryResidual"; }

 protected:
  Tensor forward(const Tensor& x) override { return (*sum_)((*branch_)((*rectifier_)(x)), x); }

 private:
  std::shared_ptr<Clamp> rectifier_;
  std::shared_ptr<Sequential> branch_;
  std::shared_ptr<Add> sum_;
};

/// The convolutions of wide_cnn(). Three of them add their result to what passes by, so one bit
/// limits the change and not the values.
/// Source: Liu et al. 2018, "Bi-Real Net"
inline Sequential binary_resnet() {
  const Conv2d::Options three{.kernel = 3, .padding = 1, .bias = false};
  return Sequential{Sequential{Conv2d{1, 64, three}, BatchNorm2d{64}},
                    BinaryResidual{64},
                    MaxPool2d{2},  // -> [N, 14, 14, 64]
                    Sequential{rectifier(), Conv2d{64, 128, three}, BatchNorm2d{128}},
                    BinaryResidual{128},
                    MaxPool2d{2},  // -> [N, 7, 7, 128]
                    BinaryResidual{128},
                    MaxPool2d{2},  // -> [N, 3, 3, 128]
                    Flatten{},
                    Linear{1152, 10}};
}

/// Few bits only for the weights of the inner convolutions and for their inputs, which Clamp makes.
/// The rest has 8 bits; published binary networks keep it in float.
inline void keep_sums_and_ends(quant::QConfig& config) {
  config.types["Clamp"] = config.model;
  config.model.activation = {};
  config.layers["0.0"] = config.layers["9"] = quant::QConfig::int8().model;
}

/// A network of the table, what it learns, and how.
struct TableNetwork : examples::Network {
  int64_t epochs = 20;      ///< in float
  int64_t qat_epochs = 20;  ///< then with quantization
  /// In the last of these, ranges, learned scales and batch norms are frozen.
  int64_t frozen_epochs = 0;
  int64_t moved = 0;  ///< images of training are moved by up to this many pixels
  int64_t batch = examples::Flags{}.batch;
  float learning_rate = examples::Flags{}.learning_rate;  ///< in float, at the start
  bool classifies = true;
  /// Changes the configuration of the table's bits. Null: all layers but the input have these bits.
  void (*configure)(quant::QConfig& config) = nullptr;
  std::string data = {};  ///< its own data; empty: the images
  /// Makes its own data. limit: as in Training. cache: a folder.
  std::function<examples::Task(uint64_t seed, int64_t limit, const std::string& cache)> task = {};
};

/// A network with random weights in integers, calibrated on random samples: for what depends on
/// its layers and bits alone.
inline IntegerModel random_model(const examples::Network& network, const quant::QConfig& config) {
  manual_seed(0);
  Sequential net = network.make();
  constexpr int64_t kSamples = 64;
  std::vector<int64_t> extents{kSamples};
  extents.insert(extents.end(), network.input.begin(), network.input.end());
  Random random(1);
  std::vector<uint8_t> codes(static_cast<size_t>(kSamples * network.input.elements()));
  for (uint8_t& code : codes) code = static_cast<uint8_t>(random.below(256));
  const TensorDataset data(SampleArray::bytes(Shape(extents), codes), SameAsInput{});
  const Tensor samples = data.batch(0, kSamples).input;
  quant::prepare_ptq(net, samples, config);
  quant::calibrate(net, samples);
  return quant::convert(net, samples);
}

/// Those for sounds learn from the examples' data, and are there if the examples are.
inline std::vector<TableNetwork> table_networks() {
  std::vector<TableNetwork> all{{{.name = "TFC", .make = three_layers<64>}},
                                {{.name = "SFC", .make = three_layers<256>}, 20, 20, 0, 1},
                                {{.name = "LFC", .make = three_layers<1024>}, 10, 10, 3, 1},
                                {{.name = "LeNet-5", .make = lenet5}, 10, 10, 3, 2},
                                {{.name = "wide CNN", .make = wide_cnn}, 10, 10, 3, 2}};
  TableNetwork binary{{.name = "binary ResNet", .make = binary_resnet}, 5, 20, 3, 2};
  binary.configure = keep_sums_and_ends;
  all.push_back(std::move(binary));
  for (const examples::Network& network : examples::networks()) {
    if (network.name == "mnist_mlp") {
      all.push_back({network});
    } else {
      all.push_back({network, 10, 10, 3, 2});
    }
  }
#if QUANTRAIN_AUDIO
  TableNetwork words{{.name = "DS-CNN", .make = examples::ds_cnn, .input = {49, 10}}};
  words.frozen_epochs = 6;
  words.learning_rate = 2e-3f;
  words.data = "spoken words";
  words.task = [](uint64_t seed, int64_t limit, const std::string& cache) {
    return examples::spot_keywords({.seed = seed, .limit = limit},
                                   {.cache = cache + "/words-" + std::to_string(seed)});
  };
  all.push_back(std::move(words));
  TableNetwork bearings{{.name = "autoencoder", .make = examples::autoencoder, .input = {640}}};
  bearings.batch = 128;
  bearings.classifies = false;
  bearings.data = "bearings";
  bearings.task = [](uint64_t seed, int64_t limit, const std::string&) {
    return examples::detect_faults({.seed = seed, .limit = limit}, {});
  };
  all.push_back(std::move(bearings));
#endif
  return all;
}

}  // namespace quantrain::proofs
