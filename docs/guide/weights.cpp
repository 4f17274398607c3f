// Imports weights from a safetensors file with names and layouts of another framework.
#include <cmath>
#include <iostream>

#include "framework/core/error.hpp"
#include "framework/io/half.hpp"
#include "framework/io/safetensors.hpp"
#include "layers/normalization.hpp"
#include "shapes.hpp"
#include "training.hpp"

/// The values of a tensor in the file. The tensor must have this shape.
std::vector<float> values_of(const TensorFile& file, const std::string& name, const Shape& shape) {
  if (!(file.at(name).shape == shape))
    throw ShapeError(name, "has shape ", file.at(name).shape, ", expected ", shape);
  return float_values(file, name);  // F32, F16 or BF16
}

/// Transposes PyTorch's [O, I, ...] to [O, ..., I]; `taps` is the product of the middle extents.
std::vector<float> transposed(const std::vector<float>& from, int64_t o, int64_t i, int64_t taps) {
  std::vector<float> to;
  for (int64_t at_o = 0; at_o < o; ++at_o) {
    for (int64_t at = 0; at < taps; ++at) {
      for (int64_t at_i = 0; at_i < i; ++at_i)
        to.push_back(from[static_cast<size_t>((at_o * i + at_i) * taps + at)]);
    }
  }
  return to;
}

/// Copies the tensors of a PyTorch file into a network with the same layers. Parameters and buffers
/// have the same names in both frameworks.
void import_weights(Module& net, const TensorFile& file) {
  for (NamedState& entry : state(net)) {
    if (entry.holds_integers()) continue;  // counts, such as those of Dropout
    const Shape shape = entry.tensor.shape();
    std::vector<float> values;
    if (shape.rank() > 2) {  // the weight of a convolution
      const int64_t o = shape[0], i = shape.back();
      std::vector<int64_t> torch_shape{o, i};
      torch_shape.insert(torch_shape.end(), shape.begin() + 1, shape.end() - 1);
      const int64_t taps = shape.elements() / (o * i);
      values = transposed(values_of(file, entry.name, Shape(torch_shape)), o, i, taps);
    } else {
      values = values_of(file, entry.name, shape);
    }
    std::copy(values.begin(), values.end(), entry.tensor.mutable_data());
  }
}

/// A file as another framework would write it: a network's state, with the weights of convolutions
/// transposed to [O, I, KH, KW].
TensorFile exported_elsewhere(const Module& net) {
  TensorFile file;
  for (const NamedState& entry : state(net)) {
    if (entry.holds_integers()) continue;  // counts, such as those of Dropout
    const Floats from = entry.tensor.floats();
    Shape shape = entry.tensor.shape();
    std::vector<float> values(from.data(), from.data() + from.size());
    if (shape.rank() == 4) {
      const int64_t o = shape[0], hw = shape[1] * shape[2], i = shape[3];
      for (int64_t k = 0; k < from.size(); ++k) {
        const int64_t at_o = k / (hw * i), at = k / i % hw, at_i = k % i;
        values[static_cast<size_t>((at_o * i + at_i) * hw + at)] = from[k];
      }
      shape = {o, i, shape[1], shape[2]};
    }
    file.add<float>(entry.name, shape, values);
  }
  return file;
}

void set(Module& net, const std::string& name, const std::vector<float>& values) {
  for (NamedState& entry : net.named_parameters())
    if (entry.name == name) std::copy(values.begin(), values.end(), entry.tensor.mutable_data());
}

// In PyTorch, trained on (x - 0.1307) / 0.3081:
//   Sequential(Conv2d(1, 8, 3, padding=1), ReLU(), MaxPool2d(2), Flatten(), Linear(512, 4))
Sequential make_padded() {
  return Sequential{OnesChannel{},  // layer 0, so PyTorch's layer i is layer i + 1 here
                    Conv2d{2, 8, {.padding = 1}},
                    ReLU{},
                    MaxPool2d{2},
                    Flatten{},
                    Linear{8 * 8 * 8, 4}};
}

/// Appends the input channel of OnesChannel, with weights of 0: [O, KH, KW, C] to
/// [O, KH, KW, C + 1].
std::vector<float> with_ones_channel(const std::vector<float>& weight, size_t channels) {
  std::vector<float> to;
  for (size_t i = 0; i < weight.size(); ++i) {
    to.push_back(weight[i]);
    if (i % channels == channels - 1) to.push_back(0.0f);
  }
  return to;
}

void import_padded(Module& net, const TensorFile& file) {
  const std::vector<float> conv = transposed(values_of(file, "0.weight", {8, 1, 3, 3}), 8, 1, 9);
  set(net, "1.weight", with_ones_channel(conv, 1));
  set(net, "1.bias", values_of(file, "0.bias", {8}));
  // The columns of 8 channels of 8 x 8 pixels, from the order [C, H, W] to [H, W, C].
  const std::vector<float> linear = values_of(file, "4.weight", {4, 512});
  set(net, "5.weight", transposed(linear, 4, 8, 8 * 8));
  set(net, "5.bias", values_of(file, "4.bias", {4}));
}

/// The logits of the first layers after OnesChannel, on normalized images: what PyTorch computes.
std::vector<float> logits_elsewhere(Sequential& there, const Dataset& images) {
  const Tensor pixels = images.batch(0, images.size()).input;
  const Floats x = pixels.floats();
  std::vector<float> z(x.data(), x.data() + x.size());
  for (float& value : z) value = (value - 0.1307f) / 0.3081f;
  const Floats y = there(Tensor::from(pixels.shape(), z)).floats();
  return {y.data(), y.data() + y.size()};
}

/// Imports a network whose first convolution pads, and returns the largest difference of a logit.
float padded() {
  manual_seed(5);
  Sequential there{Conv2d{1, 8, {.padding = 1}}, ReLU{}, MaxPool2d{2}, Flatten{}, Linear{512, 4}};
  const Dataset images = shapes(20, 3);
  const std::vector<float> expected = logits_elsewhere(there, images);
  TensorFile file = exported_elsewhere(there);
  // PyTorch's columns: the other way round, from [H, W, C] to [C, H, W].
  std::vector<float> columns = transposed(file.values<float>("4.weight"), 4, 8 * 8, 8);
  TensorFile torch;
  for (const TensorFile::Entry& entry : file.entries())
    if (entry.name != "4.weight") torch.add(entry);
  torch.add<float>("4.weight", {4, 512}, columns);

  const Tensor example = images.batch(0, 1).input;
  Sequential net = make_padded();
  import_padded(net, torch);
  fold_normalization(net, example, {.mean = {0.1307f}, .deviation = {0.3081f}});
  const Floats y = net(images.batch(0, images.size()).input).floats();
  float largest = 0.0f;
  for (size_t i = 0; i < expected.size(); ++i)
    largest = std::max(largest, std::abs(y[static_cast<int64_t>(i)] - expected[i]));
  return largest;
}

int main() try {
  Sequential trained = make_network();
  load(trained, "float.safetensors");
  save_safetensors("elsewhere.safetensors", exported_elsewhere(trained));

  Sequential net = make_network();
  import_weights(net, load_safetensors("elsewhere.safetensors"));
  const Dataset test_set = shapes(500, 2);
  std::cout << "accuracy there: " << accuracy(trained, test_set)
            << ", here: " << accuracy(net, test_set) << '\n';
  const float difference = padded();
  std::cout << "with padding and Flatten, logits differ by at most " << difference << '\n';
  return accuracy(trained, test_set) == accuracy(net, test_set) && difference < 1e-4f ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
