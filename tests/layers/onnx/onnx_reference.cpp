#include "tests/layers/onnx/onnx_reference.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "layers/onnx/elements.hpp"

namespace quantrain::test {
namespace {

using Dims = std::vector<int64_t>;

int64_t count(const Dims& dims) {
  int64_t n = 1;
  for (const int64_t extent : dims) n *= extent;
  return n;
}

size_t at(int64_t i) { return static_cast<size_t>(i); }

Array filled(const Dims& dims, double value) {
  return {dims, std::vector<double>(at(count(dims)), value)};
}

/// The index of each axis, from the index of an element.
Dims unravel(int64_t i, const Dims& dims) {
  Dims index(dims.size());
  for (size_t k = dims.size(); k-- > 0; i /= dims[k]) index[k] = i % dims[k];
  return index;
}
int64_t ravel(const Dims& index, const Dims& dims) {
  int64_t i = 0;
  for (size_t k = 0; k < dims.size(); ++k) i = i * dims[k] + index[k];
  return i;
}

/// The element of a that is broadcast to this index.
double broadcast_at(const Array& a, const Dims& index) {
  Dims own(a.dims.size());
  for (size_t k = 0; k < own.size(); ++k)
    own[k] = a.dims[k] == 1 ? 0 : index[index.size() - own.size() + k];
  return a.v[at(ravel(own, a.dims))];
}

Array binary(const Array& a, const Array& b, const std::function<double(double, double)>& f) {
  Dims dims(std::max(a.dims.size(), b.dims.size()), 1);
  for (const Array* x : {&a, &b}) {
    for (size_t k = 0; k < x->dims.size(); ++k) {
      int64_t& extent = dims[dims.size() - x->dims.size() + k];
      extent = std::max(extent, x->dims[k]);
    }
  }
  Array y = filled(dims, 0);
  for (int64_t i = 0; i < count(dims); ++i)
    y.v[at(i)] = f(broadcast_at(a, unravel(i, dims)), broadcast_at(b, unravel(i, dims)));
  return y;
}

Array unary(Array x, const std::function<double(double)>& f) {
  for (double& v : x.v) v = f(v);
  return x;
}

/// Calls visit(output index, input index or nothing, tap) for all windows of x [N, C, spatial ...].
struct Windows {
  Dims kernel, stride, dilation, before, out;
};
Windows windows(const onnx::Node& node, const Array& x, const Dims& kernel) {
  const size_t axes = kernel.size();
  Windows w{
      kernel, node.get("strides", Dims(axes, 1)), node.get("dilations", Dims(axes, 1)), {}, {}};
  Dims pads = node.get("pads", Dims(2 * axes, 0));
  for (size_t i = 0; i < axes; ++i) {
    const int64_t span = (kernel[i] - 1) * w.dilation[i] + 1;
    if (node.get("auto_pad", "NOTSET") == "SAME_UPPER") {
      const int64_t out = (x.dims[i + 2] + w.stride[i] - 1) / w.stride[i];
      const int64_t sum = std::max<int64_t>((out - 1) * w.stride[i] + span - x.dims[i + 2], 0);
      pads[i] = sum / 2;
      pads[axes + i] = sum - sum / 2;
    }
    w.before.push_back(pads[i]);
    w.out.push_back((x.dims[i + 2] + pads[i] + pads[axes + i] - span) / w.stride[i] + 1);
  }
  return w;
}

/// The element of x at channel c below a window's tap; `otherwise` in the padding.
double tap_at(const Array& x,
              const Windows& w,
              int64_t n,
              int64_t c,
              const Dims& window,
              const Dims& tap,
              double otherwise) {
  Dims index{n, c};
  for (size_t i = 0; i < tap.size(); ++i) {
    index.push_back(window[i] * w.stride[i] + tap[i] * w.dilation[i] - w.before[i]);
    if (index.back() < 0 || index.back() >= x.dims[i + 2]) return otherwise;
  }
  return x.v[at(ravel(index, x.dims))];
}

Array conv(const onnx::Node& node, const Array& x, const Array& weight, const Array* bias) {
  const Windows w = windows(node, x, Dims(weight.dims.begin() + 2, weight.dims.end()));
  const int64_t groups = node.get("group", int64_t{1});
  const int64_t outputs = weight.dims[0], depth = weight.dims[1];
  Dims dims{x.dims[0], outputs};
  dims.insert(dims.end(), w.out.begin(), w.out.end());
  Array y = filled(dims, 0);
  for (int64_t i = 0; i < count(dims); ++i) {
    const Dims index = unravel(i, dims);
    const int64_t o = index[1];
    double sum = bias == nullptr ? 0.0 : bias->v[at(o)];
    for (int64_t c = 0; c < depth; ++c) {
      for (int64_t t = 0; t < count(w.kernel); ++t) {
        const double v = tap_at(x,
                                w,
                                index[0],
                                o / (outputs / groups) * depth + c,
                                Dims(index.begin() + 2, index.end()),
                                unravel(t, w.kernel),
                                0.0);
        sum += v * weight.v[at((o * depth + c) * count(w.kernel) + t)];
      }
    }
    y.v[at(i)] = sum;
  }
  return y;
}

Array max_pool(const onnx::Node& node, const Array& x) {
  const Windows w = windows(node, x, node.get("kernel_shape", Dims()));
  Dims dims{x.dims[0], x.dims[1]};
  dims.insert(dims.end(), w.out.begin(), w.out.end());
  Array y = filled(dims, -1e300);
  for (int64_t i = 0; i < count(dims); ++i) {
    const Dims index = unravel(i, dims);
    for (int64_t t = 0; t < count(w.kernel); ++t) {
      y.v[at(i)] = std::max(y.v[at(i)],
                            tap_at(x,
                                   w,
                                   index[0],
                                   index[1],
                                   Dims(index.begin() + 2, index.end()),
                                   unravel(t, w.kernel),
                                   -1e300));
    }
  }
  return y;
}

Array reduce(const Array& x, const Dims& axes, bool keeps, bool is_max) {
  Dims kept = x.dims;
  for (const int64_t axis : axes) kept[at(axis)] = 1;
  Array y = filled(kept, is_max ? -1e300 : 0.0);
  const double share = static_cast<double>(count(kept)) / static_cast<double>(count(x.dims));
  for (int64_t i = 0; i < count(x.dims); ++i) {
    Dims index = unravel(i, x.dims);
    for (const int64_t axis : axes) index[at(axis)] = 0;
    double& to = y.v[at(ravel(index, kept))];
    to = is_max ? std::max(to, x.v[at(i)]) : to + x.v[at(i)] * share;
  }
  if (!keeps) {
    for (size_t k = axes.size(); k-- > 0;) y.dims.erase(y.dims.begin() + axes[k]);
  }
  return y;
}

Array transpose(const Array& x, const Dims& perm) {
  Dims dims;
  for (const int64_t axis : perm) dims.push_back(x.dims[at(axis)]);
  Array y = filled(dims, 0);
  for (int64_t i = 0; i < count(dims); ++i) {
    const Dims to = unravel(i, dims);
    Dims from(perm.size());
    for (size_t k = 0; k < perm.size(); ++k) from[at(perm[k])] = to[k];
    y.v[at(i)] = x.v[at(ravel(from, x.dims))];
  }
  return y;
}

Array matmul(const Array& a, const Array& b, bool transposes_b, const Array* c) {
  const int64_t inner = a.dims.back(), columns = b.dims[transposes_b ? 0 : 1];
  const int64_t rows = count(a.dims) / inner;
  Dims dims = a.dims;
  dims.back() = columns;
  Array y = filled(dims, 0);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      double sum = c == nullptr ? 0.0 : c->v[at(j)];
      for (int64_t k = 0; k < inner; ++k)
        sum += a.v[at(i * inner + k)] * b.v[at(transposes_b ? j * inner + k : k * columns + j)];
      y.v[at(i * columns + j)] = sum;
    }
  }
  return y;
}

Array concat(const std::vector<const Array*>& inputs, int64_t axis) {
  Dims dims = inputs[0]->dims;
  for (size_t i = 1; i < inputs.size(); ++i) dims[at(axis)] += inputs[i]->dims[at(axis)];
  Array y = filled(dims, 0);
  for (int64_t i = 0; i < count(dims); ++i) {
    Dims index = unravel(i, dims);
    size_t k = 0;
    for (; index[at(axis)] >= inputs[k]->dims[at(axis)]; ++k)
      index[at(axis)] -= inputs[k]->dims[at(axis)];
    y.v[at(i)] = inputs[k]->v[at(ravel(index, inputs[k]->dims))];
  }
  return y;
}

/// y[index] = x[index / factor] or, with an offset, x[index - before] and 0 outside.
Array resampled(const Array& x, const Dims& factors, const Dims& before, const Dims& dims) {
  Array y = filled(dims, 0);
  for (int64_t i = 0; i < count(dims); ++i) {
    Dims index = unravel(i, dims);
    bool inside = true;
    for (size_t k = 0; k < dims.size(); ++k) {
      index[k] = (index[k] - before[k]) / factors[k];
      inside = inside && index[k] >= 0 && index[k] < x.dims[k] && unravel(i, dims)[k] >= before[k];
    }
    if (inside) y.v[at(i)] = x.v[at(ravel(index, x.dims))];
  }
  return y;
}

Array compute(const onnx::Node& node, const std::vector<const Array*>& in) {
  const std::string& type = node.op_type;
  const auto third = [&] { return in.size() > 2 ? in[2] : nullptr; };
  const auto integers = [&](size_t i) {
    Dims list;
    for (const double v : in[i]->v) list.push_back(static_cast<int64_t>(v));
    return list;
  };
  if (type == "Conv") return conv(node, *in[0], *in[1], third());
  if (type == "MaxPool") return max_pool(node, *in[0]);
  if (type == "Gemm") return matmul(*in[0], *in[1], node.get("transB", int64_t{0}) != 0, third());
  if (type == "MatMul") return matmul(*in[0], *in[1], false, nullptr);
  if (type == "Add") return binary(*in[0], *in[1], [](double a, double b) { return a + b; });
  if (type == "Mul") return binary(*in[0], *in[1], [](double a, double b) { return a * b; });
  if (type == "Div") return binary(*in[0], *in[1], [](double a, double b) { return a / b; });
  if (type == "PRelu")
    return binary(*in[0], *in[1], [](double a, double slope) { return a > 0 ? a : slope * a; });
  if (type == "Relu") return unary(*in[0], [](double v) { return std::max(v, 0.0); });
  if (type == "Erf") return unary(*in[0], [](double v) { return std::erf(v); });
  if (type == "Sigmoid") return unary(*in[0], [](double v) { return 1 / (1 + std::exp(-v)); });
  if (type == "HardSwish")
    return unary(*in[0], [](double v) { return v * std::clamp(v / 6 + 0.5, 0.0, 1.0); });
  if (type == "HardSigmoid")
    return unary(*in[0], [](double v) { return std::clamp(0.2f * v + 0.5, 0.0, 1.0); });
  if (type == "Clip")
    return unary(*in[0], [&](double v) { return std::clamp(v, in[1]->v[0], in[2]->v[0]); });
  if (type == "Constant") {
    const auto& stored = std::get<onnx::StoredTensor>(node.find("value")->value);
    const std::vector<float> floats = onnx::floats_of(stored);
    return {stored.dims, {floats.begin(), floats.end()}};
  }
  if (type == "Shape") {
    Array y{{static_cast<int64_t>(in[0]->dims.size())}, {}};
    for (const int64_t extent : in[0]->dims) y.v.push_back(static_cast<double>(extent));
    return y;
  }
  if (type == "Gather") return {{}, {in[0]->v[at(integers(1)[0])]}};  // one of a list
  if (type == "Unsqueeze") return {{1}, in[0]->v};                    // of a single number
  if (type == "Concat") return concat(in, node.get("axis", int64_t{0}));
  if (type == "Transpose") return transpose(*in[0], node.get("perm", Dims()));
  if (type == "Flatten") return {{in[0]->dims[0], count(in[0]->dims) / in[0]->dims[0]}, in[0]->v};
  if (type == "Reshape") {
    Dims dims = integers(1);
    for (size_t k = 0; k < dims.size(); ++k) dims[k] = dims[k] == 0 ? in[0]->dims[k] : dims[k];
    int64_t known = 1;
    for (const int64_t extent : dims) known *= extent == -1 ? 1 : extent;
    std::replace(dims.begin(), dims.end(), int64_t{-1}, count(in[0]->dims) / known);
    return {dims, in[0]->v};
  }
  if (type == "BatchNormalization") {
    Array y = *in[0];
    const int64_t inner = count(Dims(y.dims.begin() + 2, y.dims.end()));
    for (int64_t i = 0; i < count(y.dims); ++i) {
      const size_t c = at(i / inner % y.dims[1]);
      y.v[at(i)] =
          in[1]->v[c] * (y.v[at(i)] - in[3]->v[c]) / std::sqrt(in[4]->v[c] + 1e-5) + in[2]->v[c];
    }
    return y;
  }
  if (type == "GlobalAveragePool") return reduce(*in[0], {2, 3}, true, false);
  if (type == "ReduceMean" || type == "ReduceMax")
    return reduce(*in[0],
                  node.get("axes", Dims()),
                  node.get("keepdims", int64_t{1}) != 0,
                  type == "ReduceMax");
  if (type == "Softmax") {  // of [N, C]
    Array y = unary(*in[0], [](double v) { return std::exp(v); });
    return binary(y,
                  unary(reduce(y, {1}, true, false),
                        [&](double v) { return v * static_cast<double>(y.dims[1]); }),
                  [](double a, double b) { return a / b; });
  }
  if (type == "Resize") {
    Dims dims = in[0]->dims;
    Dims factors = integers(in.size() > 3 ? 3 : 2);
    for (size_t k = 0; in.size() > 3 && k < factors.size(); ++k) factors[k] /= dims[k];  // sizes
    for (size_t k = 0; k < dims.size(); ++k) dims[k] *= factors[k];
    return resampled(*in[0], factors, Dims(dims.size(), 0), dims);
  }
  if (type == "Slice") {  // of one axis, with step 1
    Dims dims = in[0]->dims, before(dims.size(), 0);
    const size_t axis = at(integers(3)[0]);
    dims[axis] = integers(2)[0] - integers(1)[0];
    before[axis] = -integers(1)[0];
    return resampled(*in[0], Dims(dims.size(), 1), before, dims);
  }
  if (type == "Pad") {
    Dims dims = in[0]->dims;
    const Dims pads = integers(1);
    for (size_t k = 0; k < dims.size(); ++k) dims[k] += pads[k] + pads[dims.size() + k];
    return resampled(*in[0], Dims(dims.size(), 1), pads, dims);
  }
  throw std::runtime_error("onnx_reference does not know " + type);
}

}  // namespace

std::map<std::string, Array> onnx_reference(const onnx::Graph& graph,
                                            std::map<std::string, Array> values) {
  for (const onnx::StoredTensor& tensor : graph.initializers) {
    const std::vector<float> floats = onnx::floats_of(tensor);
    values[tensor.name] = {tensor.dims, {floats.begin(), floats.end()}};
  }
  const Array absent;
  for (const onnx::Node& node : graph.nodes) {
    std::vector<const Array*> inputs;
    for (const std::string& input : node.inputs)
      inputs.push_back(input.empty() ? &absent : &values.at(input));
    Array y = compute(node, inputs);
    values[node.outputs[0]] = std::move(y);
  }
  return values;
}

}  // namespace quantrain::test
