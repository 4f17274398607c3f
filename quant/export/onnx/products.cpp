#include "quant/export/onnx/exact.hpp"
#include "quant/export/onnx/fixed_point.hpp"
#include "quant/export/onnx/forms.hpp"

// Convolutions and linear layers in integer operators.   docs/quantization.md (7), (8)
namespace quantrain::onnx_export {
namespace {

/// Weights are stored as uint8 with this zero point: ONNX Runtime's integer products of unsigned
/// bytes saturate on no CPU, and some runtimes have no others.
constexpr int kWeightZero = 128;

std::string weights(Export& out,
                    const integer::QuantizedProduct& product,
                    const kernels::Conv2dShape& s,
                    WeightOrder order,
                    const std::vector<int64_t>& dims) {
  std::vector<uint8_t> bytes;
  for (const int8_t weight : ordered_weights(product.weight, s, order))
    bytes.push_back(static_cast<uint8_t>(weight + kWeightZero));
  std::string name = out.graph.constant<uint8_t>(dims, bytes, "weight");
  out.weights.push_back({out.position, name, order});
  return name;
}

/// The bias, and codes if the product gives codes. dims: of a constant for each channel.
std::string finish(Export& out,
                   const integer::QuantizedProduct& product,
                   int64_t channels,
                   std::string sum,
                   const std::vector<int64_t>& dims) {
  if (!product.bias.empty()) {
    sum = out.graph.node("Add",
                         {sum, out.graph.constant<int32_t>(dims, product.bias.values(), "bias")});
  }
  if (!product.output) return sum;
  return requantize(out.graph,
                    sum,
                    {.dims = dims,
                     .m0 = product.output->m0.values(),
                     .shift = product.output->shift.values(),
                     .bound = accumulator_bound(product, channels),
                     .y = product.output->y});
}

}  // namespace

std::vector<int8_t> ordered_weights(const integer::Constant& given,
                                    const kernels::Conv2dShape& s,
                                    WeightOrder order) {
  // A matrix is a convolution of one tap.
  const int64_t taps = s.kh * s.kw, channels = s.group_c(), length = taps * channels;
  const SharedArray<int8_t> weights = given.codes();
  std::vector<int8_t> result(static_cast<size_t>(weights.size()));
  for (int64_t o = 0; o < s.o; ++o) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t to =
            order == WeightOrder::kMatrix ? c * s.o + o : (o * channels + c) * taps + tap;
        result[static_cast<size_t>(to)] = weights[o * length + tap * channels + c];
      }
    }
  }
  return result;
}

Form row_form(int64_t rows, int64_t columns) {
  return rows == 1 ? Form{{columns}} : Form{{rows, columns}};
}

void exact_convolution(Export& out, const integer::QuantizedConv2d& op, int x, int y) {
  const kernels::Conv2dShape& s = op.shape;
  const std::string w =
      weights(out, op.product, s, WeightOrder::kConvolution, {s.o, s.group_c(), s.kh, s.kw});
  const std::string sum = out.graph.node("ConvInteger",
                                         {out.values.get(x, input_image(s)),
                                          w,
                                          out.graph.scalar(static_cast<uint8_t>(op.product.zero_x)),
                                          out.graph.scalar<uint8_t>(kWeightZero)},
                                         convolution_attributes(s));
  out.values.set(y, output_image(s), finish(out, op.product, s.o, sum, {s.o, 1, 1}));
}

void exact_linear(Export& out, const integer::QuantizedLinear& op, int x, int y) {
  const kernels::Conv2dShape s{.c = op.inputs, .o = op.outputs};
  const std::string w = weights(out, op.product, s, WeightOrder::kMatrix, {op.inputs, op.outputs});
  const std::string sum = out.graph.node("MatMulInteger",
                                         {out.values.get(x, row_form(op.rows, op.inputs)),
                                          w,
                                          out.graph.scalar(static_cast<uint8_t>(op.product.zero_x)),
                                          out.graph.scalar<uint8_t>(kWeightZero)});
  out.values.set(
      y, row_form(op.rows, op.outputs), finish(out, op.product, op.outputs, sum, {op.outputs}));
}

}  // namespace quantrain::onnx_export
