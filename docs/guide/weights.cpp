// Loads the weights of a PyTorch network. The program writes the file itself, as
// safetensors.torch.save_file(net.state_dict(), path) would in Python.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "framework/core/error.hpp"
#include "framework/io/safetensors.hpp"
#include "shapes.hpp"
#include "training.hpp"

/// Transposes [O, ..., I] to PyTorch's [O, I, ...]; `taps` is the product of the middle extents.
std::vector<float> transposed(const Floats& from, int64_t taps, int64_t i) {
  std::vector<float> to;
  for (int64_t o = 0; o < from.size() / (taps * i); ++o) {
    for (int64_t at_i = 0; at_i < i; ++at_i) {
      for (int64_t at = 0; at < taps; ++at) to.push_back(from[(o * taps + at) * i + at_i]);
    }
  }
  return to;
}

/// The network's state in PyTorch's layout. The columns of "4.weight", if it has `pixels`, are
/// those of a flattened image.
TensorFile exported_elsewhere(const Module& net, int64_t pixels = 1) {
  TensorFile file;
  for (const NamedState& entry : state(net)) {
    if (entry.holds_integers()) continue;  // counts, such as those of Dropout
    const Floats from = entry.tensor.floats();
    Shape shape = entry.tensor.shape();
    const int64_t i = shape.back();
    std::vector<float> values = transposed(from, 1, i);
    if (shape.rank() == 4) {
      values = transposed(from, shape[1] * shape[2], i);
      shape = {shape[0], i, shape[1], shape[2]};
    } else if (entry.name == "4.weight") {
      values = transposed(from, pixels, i / pixels);
    }
    file.add<float>(entry.name, shape, values);
  }
  return file;
}

// In PyTorch, trained on (x - 0.1307) / 0.3081:
//   Sequential(Conv2d(1, 8, 3, padding=1), ReLU(), MaxPool2d(2), Flatten(), Linear(512, 4))
Sequential make_padded() {
  return Sequential{
      OnesChannel{},
      Sequential{
          Conv2d{2, 8, {.padding = 1}}, ReLU{}, MaxPool2d{2}, Flatten{}, Linear{8 * 8 * 8, 4}}};
}

Sequential load_padded(const Tensor& example) {
  Sequential net = make_padded();
  load_pytorch(net, example, "padded.safetensors", {.names = {{"1", ""}}});
  fold_normalization(net, example, {.mean = {0.1307f}, .deviation = {0.3081f}});
  return net;
}

/// The largest difference of a logit between the network above and what PyTorch computes, which is
/// the layers after OnesChannel, on normalized images.
float padded_difference(const Dataset& images) {
  Sequential there{Conv2d{1, 8, {.padding = 1}}, ReLU{}, MaxPool2d{2}, Flatten{}, Linear{512, 4}};
  save_safetensors("padded.safetensors", exported_elsewhere(there, 8 * 8));

  const Tensor x = images.batch(0, images.size()).input;
  const Floats pixels = x.floats();
  std::vector<float> z(pixels.data(), pixels.data() + pixels.size());
  for (float& value : z) value = (value - 0.1307f) / 0.3081f;
  const Tensor expected = there(Tensor::from(x.shape(), z));
  const Tensor y = load_padded(images.batch(0, 1).input)(x);
  float largest = 0.0f;
  for (int64_t i = 0; i < y.elements(); ++i)
    largest = std::max(largest, std::abs(y.floats()[i] - expected.floats()[i]));
  return largest;
}

int main() try {
  Sequential trained = make_network();
  load(trained, "float.safetensors");
  save_safetensors("pytorch.safetensors", exported_elsewhere(trained));

  const Dataset test_set = shapes(500, 2);
  Sequential net = make_network();
  load_pytorch(net, test_set.batch(0, 1).input, "pytorch.safetensors");
  std::cout << "accuracy there: " << accuracy(trained, test_set)
            << ", here: " << accuracy(net, test_set) << '\n';
  const float difference = padded_difference(shapes(20, 3));
  std::cout << "with padding and Flatten, logits differ by at most " << difference << '\n';
  return accuracy(trained, test_set) == accuracy(net, test_set) && difference < 1e-4f ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
