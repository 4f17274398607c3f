#include <algorithm>

#include "layers/onnx/exporter.hpp"

// Products, pools, batch norms, and arithmetic of several operands.
namespace quantrain::onnx {
namespace {

using Numbers = std::vector<int64_t>;

/// Weights [O, taps..., I] of a convolution as [O, I, taps...].
std::vector<float> channels_before_taps(const std::vector<float>& w, const Shape& shape) {
  const int64_t outputs = shape[0], channels = shape.back();
  const int64_t taps = std::ssize(w) / (outputs * channels);
  std::vector<float> result(w.size());
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t c = 0; c < channels; ++c) {
        result[static_cast<size_t>((o * channels + c) * taps + tap)] =
            w[static_cast<size_t>((o * taps + tap) * channels + c)];
      }
    }
  }
  return result;
}

/// Before and after the elements of each axis.
Numbers pads_of(const NodeExport& out) {
  Numbers pads = out.attributes.integers("padding");
  Numbers after = pads;
  for (const auto& [name, value] : out.attributes) {
    if (name != "end") continue;
    const Numbers& end = std::get<Numbers>(value);
    for (size_t i = 0; i < after.size(); ++i) after[i] += end[i];
  }
  pads.insert(pads.end(), after.begin(), after.end());
  return pads;
}

// conv2d and conv1d
void export_convolution(NodeExport& out) {
  const Shape& shape = out.node.inputs[1].shape();
  Numbers dims{shape[0], shape.back()};
  Numbers kernel;
  for (int k = 1; k + 1 < shape.rank(); ++k) kernel.push_back(shape[k]);
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  std::vector<std::string> inputs{
      out.x(channels_first(out.sample())),
      out.constant(1, dims, channels_before_taps(out.floats(1), shape))};
  if (out.has(2)) inputs.push_back(out.constant(2, {shape[0]}));
  out.give(channels_first(out.y_sample()),
           out.add("Conv",
                   std::move(inputs),
                   {{"kernel_shape", kernel},
                    {"strides", out.attributes.integers("stride")},
                    {"pads", pads_of(out)},
                    {"dilations", out.attributes.integers("dilation")},
                    {"group", out.attributes.integer("groups")}}));
}

void export_linear(NodeExport& out) {
  const Shape& shape = out.node.inputs[1].shape();
  const Shape sample = out.sample();
  const Form form = form_of(sample), y = form_of(out.y_sample());
  if (sample.rank() == 1) {
    std::vector<std::string> inputs{out.x(form), out.constant(1, {shape[0], shape[1]})};
    if (out.has(2)) inputs.push_back(out.constant(2, {shape[0]}));
    return out.give(y, out.add("Gemm", std::move(inputs), {{"transB", int64_t{1}}}));
  }
  const std::vector<float> w = out.floats(1);
  std::vector<float> transposed(w.size());
  for (int64_t o = 0; o < shape[0]; ++o) {
    for (int64_t i = 0; i < shape[1]; ++i)
      transposed[static_cast<size_t>(i * shape[0] + o)] = w[static_cast<size_t>(o * shape[1] + i)];
  }
  std::string product =
      out.add("MatMul", {out.x(form), out.constant(1, {shape[1], shape[0]}, transposed)});
  if (out.has(2)) product = out.add("Add", {product, out.constant(2, {shape[0]})});
  out.give(y, product);
}

void export_matmul(NodeExport& out) {
  const Shape& b = out.node.inputs[1].shape();
  if (out.is_data(1) && b.rank() < 3) throw NoForm{"it mixes the samples of a batch"};
  const std::string right =
      out.is_data(1) ? out.x(form_of(out.sample(1)), 1) : out.constant(1, form_of(b).dims);
  out.give(form_of(out.y_sample()), out.add("MatMul", {out.x(form_of(out.sample())), right}));
}

Exporter export_pool(std::string op_type) {
  return [op_type = std::move(op_type)](NodeExport& out) {
    const Numbers& kernel = out.attributes.integers("kernel");
    std::vector<Attribute> attributes{{"kernel_shape", kernel},
                                      {"strides", out.attributes.integers("stride")},
                                      {"pads", pads_of(out)}};
    int64_t elements = 1, divisor = 0;
    for (const int64_t extent : kernel) elements *= extent;
    for (const auto& [name, value] : out.attributes) {
      if (name == "divisor") divisor = std::get<int64_t>(value);
    }
    if (divisor > 0) attributes.push_back({"count_include_pad", int64_t{1}});
    std::string y = out.add(op_type, {out.x(channels_first(out.sample()))}, std::move(attributes));
    if (divisor > 0 && divisor != elements) {
      const auto factor = static_cast<float>(elements) / static_cast<float>(divisor);
      y = out.add("Mul", {y, out.graph.scalar<float>(factor)});
    }
    out.give(channels_first(out.y_sample()), y);
  };
}

void export_batch_norm(NodeExport& out) {
  if (out.attributes.integer("training") != 0) throw NoForm{"it is in training mode"};
  const Shape sample = out.sample();
  if (sample.rank() > 3) throw NoForm{"it takes images, signals or features"};
  const Form form = channels_first(sample);
  std::vector<std::string> inputs{out.x(form)};
  for (size_t i = 1; i < 5; ++i) inputs.push_back(out.constant(i, {sample.back()}));
  const auto epsilon = static_cast<float>(out.attributes.real("epsilon"));
  out.give(form, out.add("BatchNormalization", std::move(inputs), {{"epsilon", epsilon}}));
}

Exporter export_softmax(std::string op_type) {
  return [op_type = std::move(op_type)](NodeExport& out) {
    const Form form = form_of(out.sample());
    out.give(form, out.add(op_type, {out.x(form)}, {{"axis", int64_t{-1}}}));
  };
}

/// Whether all operands can have their channels first, and one has.
bool are_images(NodeExport& out, int rank) {
  bool any = false;
  for (size_t i = 0; i < out.node.inputs.size(); ++i) {
    if (!out.is_data(i)) {
      const Shape& shape = out.node.inputs[i].shape();
      const bool is_channel = shape.elements() == 1 || (shape.elements() == shape.back() &&
                                                        shape.back() == out.y_sample().back());
      if (!is_channel) return false;
      continue;
    }
    const Shape sample = out.sample(i);
    if (sample.rank() != rank) return false;
    any = any || out.first_form(i) == channels_first(sample);
  }
  return any && (rank == 2 || rank == 3);
}

// Operands of one shape, or that broadcast in our order of axes.
Exporter export_arithmetic(std::string op_type) {
  return [op_type = std::move(op_type)](NodeExport& out) {
    const Shape y = out.y_sample();
    const bool images = are_images(out, y.rank());
    const auto form = [&](const Shape& sample) {
      return images ? channels_first(sample) : form_of(sample);
    };
    std::string sum;
    for (size_t i = 0; i < out.node.inputs.size(); ++i) {
      std::string operand;
      if (out.is_data(i)) {
        const Shape sample = out.sample(i);
        if (sample.rank() != y.rank()) throw NoForm{"its operands have different ranks"};
        operand = out.x(form(sample), i);
      } else {
        const Shape& shape = out.node.inputs[i].shape();
        operand = images ? out.constant(i, channel_dims(form(y), shape.elements()))
                         : out.constant(i, form_of(shape).dims);
      }
      sum = i == 0 ? operand : out.add(op_type, {sum, operand});
    }
    if (out.node.inputs.size() == 1) sum = out.add("Identity", {sum});
    out.give(form(y), sum);
  };
}

}  // namespace

void add_layer_exporters(ExporterTable& table) {
  table["conv1d"] = table["conv2d"] = export_convolution;
  table["linear"] = export_linear;
  table["matmul"] = export_matmul;
  table["max_pool1d"] = table["max_pool2d"] = export_pool("MaxPool");
  table["avg_pool1d"] = table["avg_pool2d"] = export_pool("AveragePool");
  table["batch_norm"] = export_batch_norm;
  table["softmax"] = export_softmax("Softmax");
  table["log_softmax"] = export_softmax("LogSoftmax");
  table["add"] = export_arithmetic("Add");
  table["sub"] = export_arithmetic("Sub");
  table["mul"] = export_arithmetic("Mul");
  table["div"] = export_arithmetic("Div");
}

}  // namespace quantrain::onnx
