#include <algorithm>
#include <utility>

#include "layers/batch_norm.hpp"
#include "layers/conv1d.hpp"
#include "layers/conv2d.hpp"
#include "layers/linear.hpp"
#include "layers/onnx/import_window.hpp"
#include "layers/onnx/importer.hpp"

// Layers with weights: Conv, Gemm, MatMul, BatchNormalization. An addition of a constant after one
// of the first three becomes its bias.
namespace quantrain::onnx {
namespace {

quantrain::Tensor bias_of(const std::optional<std::vector<float>>& bias) {
  if (!bias) return {};
  return tensor_of({static_cast<int64_t>(bias->size())}, *bias);
}

/// If the node's output is read only by an addition of a constant that varies along `axis` of y,
/// takes the constant as the bias, and the addition's output as y.
const Node* take_bias(NodeImport& n,
                      const Value& y,
                      int axis,
                      std::optional<std::vector<float>>& bias) {
  if (bias) return nullptr;
  const std::string& output = n.node.outputs[0];
  const Node* const reader = n.importer.only_reader(output, "Add");
  if (reader == nullptr) return nullptr;
  const ConstantPtr constant = n.importer.other_constant(*reader, output);
  if (constant == nullptr || !constant->is_float()) return nullptr;
  bias = along_axis(n.importer, *constant, y, axis);
  return bias ? reader : nullptr;
}

void conv(NodeImport& n) {
  Importer& importer = n.importer;
  const Constant& w = n.constant(1);
  const Value& given = n.x();
  if (given.rank() < 3 || static_cast<int64_t>(w.dims.size()) != given.rank())
    throw Refusal{"weights of another rank"};
  Windows windows = windows_of(n, given, {w.dims.begin() + 2, w.dims.end()});
  const int64_t groups = n.node.get("group", int64_t{1});
  const int64_t channels = importer.extent(given, 1);
  const int64_t outputs = w.dims[0];
  if (groups < 1 || w.dims[1] < 1 || outputs < 1 || channels % groups != 0 ||
      channels / groups != w.dims[1] || outputs % groups != 0)
    throw Refusal{"weights that do not fit its channels"};
  const bool is_depthwise = groups == channels && outputs == channels && groups > 1;

  Importer::Last last = importer.with_last(given, 1);
  Value& x = last.x;
  std::vector<int64_t> order = importer.permutation(last);
  if (!order.empty() && groups != 1 && !is_depthwise) {
    std::vector<int> axes{0};
    for (int i = 2; i < given.rank(); ++i) axes.push_back(i);
    axes.push_back(1);
    x = importer.ordered(given, axes);
    order.clear();
  }
  if (x.storage->axes.size() != windows.axes() + 2) throw Refusal{"mixes the samples of a batch"};
  if (!windows.is_symmetric()) x = padded(n, x, windows);

  // [O, I, taps] becomes [O, taps, I].
  const std::vector<float> from = w.floats();
  const auto taps = static_cast<size_t>(product(windows.kernel));
  const auto depth = static_cast<size_t>(w.dims[1]);
  std::vector<float> weight;
  weight.reserve(from.size());
  const auto place = [&](size_t i) { return order.empty() ? i : static_cast<size_t>(order[i]); };
  for (size_t o = 0; o < static_cast<size_t>(outputs); ++o) {
    const size_t source = is_depthwise ? place(o) : o;
    for (size_t t = 0; t < taps; ++t) {
      for (size_t i = 0; i < depth; ++i)
        weight.push_back(from[(source * depth + (is_depthwise ? i : place(i))) * taps + t]);
    }
  }

  Value y = x;
  const Group channel = is_depthwise ? x.axes[1] : importer.atoms().group(outputs);
  y.axes = {x.axes[0], channel};
  y.storage = std::make_shared<Storage>(Storage{{{kBatch}}});
  for (size_t i = 0; i < windows.axes(); ++i) {
    y.axes.push_back(importer.atoms().group(windows.count(i)));
    y.storage->axes.push_back(y.axes.back());
  }
  y.storage->axes.push_back(is_depthwise ? x.storage->axes.back() : channel);

  std::optional<std::vector<float>> bias;
  if (n.has(2)) bias = n.constant(2).floats();
  const Node* const absorbed = take_bias(n, y, 1, bias);
  if (bias && static_cast<int64_t>(bias->size()) != outputs)
    throw Refusal{"a bias of another size"};
  if (bias && is_depthwise) bias = permuted(*bias, order);

  const int64_t i0 = windows.kernel[0];
  std::shared_ptr<Module> layer;
  if (windows.axes() == 1) {
    layer = std::make_shared<Conv1d>(tensor_of({outputs, i0, w.dims[1]}, weight),
                                     bias_of(bias),
                                     Conv1d::Options{.stride = windows.stride[0],
                                                     .padding = windows.before[0],
                                                     .groups = groups,
                                                     .dilation = windows.dilation[0]});
  } else {
    layer = std::make_shared<Conv2d>(
        tensor_of({outputs, i0, windows.kernel[1], w.dims[1]}, weight),
        bias_of(bias),
        Conv2d::Options{.stride = {windows.stride[0], windows.stride[1]},
                        .padding = {windows.before[0], windows.before[1]},
                        .groups = groups,
                        .dilation = {windows.dilation[0], windows.dilation[1]}});
  }
  y.step = importer.add(importer.step_name(n.node, n.node.inputs[1]), std::move(layer), {x.step});
  importer.note_weights(y.step, n.node.inputs[1]);
  if (absorbed != nullptr) importer.absorb(*absorbed, y);
  n.give(std::move(y));
}

/// y = x w, along an axis of x. w: [outputs, inputs] row-major, in the file's order.
void product_along(NodeImport& n,
                   const Value& given,
                   int axis,
                   const std::vector<float>& w,
                   int64_t outputs,
                   bool keeps_axis,
                   std::optional<std::vector<float>> bias,
                   const std::string& weight_name) {
  Importer& importer = n.importer;
  const int64_t inputs = importer.extent(given, axis);
  if (outputs < 1 || static_cast<int64_t>(w.size()) != outputs * inputs)
    throw Refusal{"weights that do not fit its input"};
  const Importer::Last last = importer.with_last(given, axis);
  const Value& x = last.x;
  const std::vector<int64_t> order = importer.permutation(last);
  std::vector<float> weight;
  weight.reserve(w.size());
  for (size_t o = 0; o < static_cast<size_t>(outputs); ++o) {
    for (size_t i = 0; i < static_cast<size_t>(inputs); ++i) {
      const size_t place = order.empty() ? i : static_cast<size_t>(order[i]);
      weight.push_back(w[o * static_cast<size_t>(inputs) + place]);
    }
  }
  Value y = x;
  y.axes[static_cast<size_t>(axis)] = importer.atoms().group(outputs);
  y.storage = std::make_shared<Storage>(*x.storage);
  y.storage->axes.back() = y.axes[static_cast<size_t>(axis)];
  const Node* const absorbed = keeps_axis ? take_bias(n, y, axis, bias) : nullptr;
  if (bias && static_cast<int64_t>(bias->size()) != outputs)
    throw Refusal{"a bias of another size"};
  y.step =
      importer.add(importer.step_name(n.node, weight_name),
                   std::make_shared<Linear>(tensor_of({outputs, inputs}, weight), bias_of(bias)),
                   {x.step});
  importer.note_weights(y.step, weight_name);
  if (!keeps_axis) y.axes.erase(y.axes.begin() + axis);
  if (absorbed != nullptr) importer.absorb(*absorbed, y);
  n.give(std::move(y));
}

std::vector<float> transposed(const std::vector<float>& w, int64_t rows, int64_t columns) {
  std::vector<float> t;
  t.reserve(w.size());
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) t.push_back(w[static_cast<size_t>(i * columns + j)]);
  }
  return t;
}

void gemm(NodeImport& n) {
  const Value& x = n.x();
  const Constant& b = n.constant(1);
  if (x.rank() != 2 || b.dims.size() != 2) throw Refusal{"operands that are no matrices"};
  const bool transposes_x = n.node.get("transA", int64_t{0}) != 0;
  const bool transposes_b = n.node.get("transB", int64_t{0}) != 0;
  const float alpha = n.node.get("alpha", 1.0f);
  const float beta = n.node.get("beta", 1.0f);
  const int64_t outputs = b.dims[transposes_b ? 0 : 1];
  std::vector<float> w = b.floats();
  if (!transposes_b) w = transposed(w, b.dims[0], b.dims[1]);
  for (float& v : w) v *= alpha;
  std::optional<std::vector<float>> bias;
  if (n.has(2)) {
    const Constant& c = n.constant(2);
    const std::vector<int64_t>& dims = c.dims;
    const bool is_row = c.elements() == 1 || dims == std::vector{outputs} ||
                        dims == std::vector<int64_t>{1, outputs};
    if (!is_row) throw Refusal{"a C that is not one row"};
    bias = c.floats();
    if (bias->size() == 1) bias->assign(static_cast<size_t>(outputs), (*bias)[0]);
    for (float& v : *bias) v *= beta;
  }
  Value turned = x;
  if (transposes_x) std::swap(turned.axes[0], turned.axes[1]);
  product_along(n, turned, 1, w, outputs, true, std::move(bias), n.node.inputs[1]);
}

void matmul(NodeImport& n) {
  if (!n.is_constant(0) && !n.is_constant(1))
    throw Refusal{"of two computed values, as in attention"};
  const bool is_left = n.is_constant(0);  // the constant is the left operand
  const Constant& w = n.constant(is_left ? 0 : 1);
  const Value& x = n.x(is_left ? 1 : 0);
  std::vector<int64_t> dims = w.dims;
  if (dims.empty() || static_cast<int64_t>(dims.size()) > std::max<int64_t>(x.rank(), 2))
    throw Refusal{"weights of another rank"};
  while (dims.size() > 2 && dims[0] == 1) dims.erase(dims.begin());
  if (dims.size() > 2) throw Refusal{"a matrix for each sample or channel"};
  const bool is_vector = dims.size() == 1;
  const std::vector<float> values = w.floats();
  if (is_left) {
    if (is_vector || x.rank() < 2) throw Refusal{"of a vector"};
    product_along(n,
                  x,
                  static_cast<int>(x.rank()) - 2,
                  values,
                  dims[0],
                  true,
                  std::nullopt,
                  n.node.inputs[0]);
    return;
  }
  const int64_t outputs = is_vector ? 1 : dims[1];
  product_along(n,
                x,
                static_cast<int>(x.rank()) - 1,
                is_vector ? values : transposed(values, dims[0], dims[1]),
                outputs,
                !is_vector,
                std::nullopt,
                n.node.inputs[1]);
}

void batch_norm(NodeImport& n) {
  if (n.node.get("training_mode", int64_t{0}) != 0) throw Refusal{"training_mode"};
  if (n.node.get("spatial", int64_t{1}) != 1) throw Refusal{"spatial 0"};
  Importer& importer = n.importer;
  const Value& given = n.x();
  if (given.rank() < 2) throw Refusal{"of an input without channels"};
  const int64_t channels = importer.extent(given, 1);
  for (size_t i = 1; i < 5; ++i) {
    if (n.constant(i).elements() != channels)
      throw Refusal{"parameters that do not fit its channels"};
  }
  const Importer::Last last = importer.with_last(given, 1);
  const Value& x = last.x;
  const std::vector<int64_t> order = importer.permutation(last);
  quantrain::Tensor tensors[4];
  for (size_t i = 0; i < 4; ++i) {
    const std::vector<float> values = n.constant(i + 1).floats();
    tensors[i] = tensor_of({channels}, permuted(values, order));
  }
  // ONNX's momentum is the weight of the old statistics.
  const BatchNorm::Options options{.epsilon = n.node.get("epsilon", 1e-5f),
                                   .momentum = 1.0f - n.node.get("momentum", 0.9f)};
  const size_t rank = x.storage->axes.size();
  std::shared_ptr<Module> layer;
  if (rank == 4) {
    layer = std::make_shared<BatchNorm2d>(tensors[0], tensors[1], tensors[2], tensors[3], options);
  } else if (rank == 2 || rank == 3) {
    layer = std::make_shared<BatchNorm1d>(tensors[0], tensors[1], tensors[2], tensors[3], options);
  } else {
    throw Refusal{"of " + std::to_string(rank) + " axes"};
  }
  Value y = x;
  y.step = importer.add(importer.step_name(n.node, n.node.inputs[1]), std::move(layer), {x.step});
  n.give(std::move(y));
}

}  // namespace

void add_products(HandlerTable& table) {
  table["Conv"] = conv;
  table["Gemm"] = gemm;
  table["MatMul"] = matmul;
  table["BatchNormalization"] = batch_norm;
}

}  // namespace quantrain::onnx
