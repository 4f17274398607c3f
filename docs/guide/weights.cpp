// Imports weights from a safetensors file with names and layouts of another framework.
#include <iostream>

#include "framework/core/error.hpp"
#include "framework/io/safetensors.hpp"
#include "shapes.hpp"
#include "training.hpp"

/// The values of a tensor in the file. The tensor must have this shape.
std::vector<float> values_of(const TensorFile& file, const std::string& name, const Shape& shape) {
  if (!(file.at(name).shape == shape))
    throw ShapeError(name, "has shape ", file.at(name).shape, ", expected ", shape);
  return file.values<float>(name);
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

int main() try {
  Sequential trained = make_network();
  load(trained, "float.safetensors");
  save_safetensors("elsewhere.safetensors", exported_elsewhere(trained));

  Sequential net = make_network();
  import_weights(net, load_safetensors("elsewhere.safetensors"));
  const Dataset test_set = shapes(500, 2);
  std::cout << "accuracy there: " << accuracy(trained, test_set)
            << ", here: " << accuracy(net, test_set) << '\n';
  return accuracy(trained, test_set) == accuracy(net, test_set) ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
