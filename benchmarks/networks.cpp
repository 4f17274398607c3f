#include "benchmarks/networks.hpp"

#include "framework/core/random.hpp"
#include "layers/layers.hpp"
#include "quant/training/prepare.hpp"

namespace quantrain::benchmarks {
namespace {

Sequential mnist_mlp() {
  return Sequential{Flatten{}, Linear{784, 256}, ReLU{}, Linear{256, 128}, ReLU{}, Linear{128, 10}};
}

Sequential mnist_cnn() {
  return Sequential{Conv2d{1, 32, {.kernel = 3}},
                    ReLU{},
                    Conv2d{32, 64, {.kernel = 3}},
                    ReLU{},
                    MaxPool2d{2},
                    Flatten{},
                    Linear{9216, 128},
                    ReLU{},
                    Linear{128, 10}};
}

Sequential block(int64_t in, int64_t out) {
  return Sequential{Conv2d{in, out, {.kernel = 3, .padding = 1, .bias = false}},
                    BatchNorm2d{out},
                    ReLU{},
                    MaxPool2d{2}};
}

Sequential mnist_bncnn() {
  return Sequential{block(1, 16), block(16, 32), block(32, 64), Flatten{}, Linear{576, 10}};
}

class Residual : public Module {
 public:
  explicit Residual(int64_t channels)
      : branch_(add("branch",
                    Sequential{
                        Conv2d{channels, channels, {.kernel = 3, .padding = 1, .bias = false}},
                        BatchNorm2d{channels},
                        ReLU{},
                        Conv2d{channels, channels, {.kernel = 3, .padding = 1, .bias = false}},
                        BatchNorm2d{channels},
                    })),
        sum_(add("sum", Add{})),
        relu_(add("relu", ReLU{})) {}

  std::string_view type() const override { return "Residual"; }

 protected:
  Tensor forward(const Tensor& x) override { return (*relu_)((*sum_)((*branch_)(x), x)); }

 private:
  std::shared_ptr<Sequential> branch_;
  std::shared_ptr<Add> sum_;
  std::shared_ptr<ReLU> relu_;
};

Sequential mnist_resnet() {
  return Sequential{
      Conv2d{1, 16, {.kernel = 3, .stride = 2, .padding = 1, .bias = false}},
      BatchNorm2d{16},
      ReLU{},
      Residual{16},
      Conv2d{16, 32, {.kernel = 3, .stride = 2, .padding = 1, .bias = false}},
      BatchNorm2d{32},
      ReLU{},
      Residual{32},
      GlobalAvgPool2d{},
      Flatten{},
      Linear{32, 10},
  };
}

}  // namespace

const std::vector<Network>& networks() {
  static const std::vector<Network> all{{"mnist_mlp", mnist_mlp},
                                        {"mnist_cnn", mnist_cnn},
                                        {"mnist_bncnn", mnist_bncnn},
                                        {"mnist_resnet", mnist_resnet}};
  return all;
}

Tensor noise(int64_t n, uint64_t seed) {
  Tensor images = Tensor::empty({n, 28, 28, 1});
  Random random(seed);
  float* const x = images.mutable_data();
  for (int64_t i = 0; i < images.elements(); ++i) x[i] = random.uniform();
  return images;
}

std::vector<Layer> layers(const Network& network, int64_t batch) {
  std::vector<Layer> found;
  Sequential net = network.make();
  const Graph graph = quant::record_graph(net, noise(1));
  for (const GraphNode& node : graph.nodes()) {
    const bool linear = node.type() == "linear";
    if (!linear && node.type() != "conv2d") continue;
    const Shape& x = node.inputs[0].shape();
    const Shape& w = node.inputs[1].shape();
    Layer layer;
    layer.linear = linear;
    layer.first = found.empty();
    kernels::Conv2dShape& s = layer.shape;
    s.n = batch;
    s.c = x.back();
    s.o = w[0];
    if (!linear) {
      const Attributes attributes = node.node->attributes();
      s.h = x[1];
      s.w = x[2];
      s.kh = w[1];
      s.kw = w[2];
      s.stride_h = attributes.integers("stride")[0];
      s.stride_w = attributes.integers("stride")[1];
      s.pad_h = attributes.integers("padding")[0];
      s.pad_w = attributes.integers("padding")[1];
      s.groups = attributes.integer("groups");
    }
    found.push_back(layer);
  }
  return found;
}

int64_t inference_operations(const Network& network, int64_t batch) {
  int64_t sum = 0;
  for (const Layer& layer : layers(network, batch)) {
    sum += 2 * layer.shape.y_elements() * layer.shape.reduction();
  }
  return sum;
}

int64_t training_operations(const Network& network, int64_t batch) {
  int64_t sum = 0;
  for (const Layer& layer : layers(network, batch)) {
    sum += (layer.first ? 2 : 3) * 2 * layer.shape.y_elements() * layer.shape.reduction();
  }
  return sum;
}

}  // namespace quantrain::benchmarks
