#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/layers/onnx/onnx_files.hpp"

// Small quantized networks as ONNX files. They are also seeds of the fuzzer.
namespace quantrain::test {

inline Proto onnx_bytes(std::string_view name,
                        int type,
                        const std::vector<int64_t>& dims,
                        const std::vector<int>& values) {
  std::vector<uint8_t> bytes;
  for (const int value : values) bytes.push_back(static_cast<uint8_t>(value));
  return onnx_tensor(name, type, dims).text(9, raw_bytes(bytes));
}
inline Proto onnx_u8(std::string_view name,
                     const std::vector<int64_t>& dims,
                     const std::vector<int>& values) {
  return onnx_bytes(name, 2, dims, values);
}
inline Proto onnx_i8(std::string_view name,
                     const std::vector<int64_t>& dims,
                     const std::vector<int>& values) {
  return onnx_bytes(name, 3, dims, values);
}
inline Proto onnx_i32(std::string_view name,
                      const std::vector<int64_t>& dims,
                      const std::vector<int32_t>& values) {
  return onnx_tensor(name, 6, dims).text(9, raw_bytes(values));
}
inline Proto onnx_scalar(std::string_view name, float value) {
  return onnx_floats(name, {}, {value});
}
inline Proto onnx_node_of(std::string_view domain,
                          std::string_view op_type,
                          const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs,
                          const std::vector<Proto>& attributes = {}) {
  Proto node = onnx_node(op_type, inputs, outputs, attributes);
  return node.text(7, domain);
}

/// Adds QuantizeLinear and DequantizeLinear of a value, with zero point `zero`.
inline void add_qdq(
    OnnxParts& parts, const std::string& x, const std::string& y, float scale, int zero) {
  parts.initializers.push_back(onnx_scalar(y + "_s", scale));
  parts.initializers.push_back(onnx_u8(y + "_z", {}, {zero}));
  parts.nodes.push_back(onnx_node("QuantizeLinear", {x, y + "_s", y + "_z"}, {y + "_q"}));
  parts.nodes.push_back(onnx_node("DequantizeLinear", {y + "_q", y + "_s", y + "_z"}, {y}));
}

/// The codes of the weights [2, 3] in the networks below, and their scales.
inline const std::vector<int> kQuantizedWeights{1, 2, 3, -4, 5, -127};

/// y = x w^T + b, quantized as ONNX Runtime does: per channel, with a bias of int32.
/// x: scale 0.5, zero point 10; w: scales 0.25 and 0.5; y: scale 2, zero point 100.
inline OnnxParts onnx_qdq_gemm() {
  OnnxParts parts{.inputs = {onnx_value("x", {-1, 3})}, .outputs = {onnx_value("y", {-1, 2})}};
  parts.initializers = {onnx_i8("fc.weight_quantized", {2, 3}, kQuantizedWeights),
                        onnx_floats("w_s", {2}, {0.25f, 0.5f}),
                        onnx_i8("w_z", {2}, {0, 0}),
                        onnx_i32("b_q", {2}, {8, -12}),
                        onnx_floats("b_s", {2}, {0.125f, 0.25f}),
                        onnx_i32("b_z", {2}, {0, 0})};
  parts.nodes = {
      onnx_node("DequantizeLinear",
                {"fc.weight_quantized", "w_s", "w_z"},
                {"w"},
                {onnx_attribute("axis", int64_t{0})}),
      onnx_node(
          "DequantizeLinear", {"b_q", "b_s", "b_z"}, {"b"}, {onnx_attribute("axis", int64_t{0})})};
  add_qdq(parts, "x", "xd", 0.5f, 10);
  parts.nodes.push_back(
      onnx_node("Gemm", {"xd", "w", "b"}, {"h"}, {onnx_attribute("transB", int64_t{1})}, "Gemm"));
  add_qdq(parts, "h", "y", 2.0f, 100);
  return parts;
}

/// The same as QLinearMatMul and QLinearAdd of a constant: y = x w + b.
inline OnnxParts onnx_qoperator_matmul() {
  OnnxParts parts{.inputs = {onnx_value("x", {-1, 3})}, .outputs = {onnx_value("y", {-1, 2})}};
  parts.initializers = {onnx_scalar("x_s", 0.5f),
                        onnx_u8("x_z", {}, {10}),
                        onnx_i8("w", {3, 2}, {1, -4, 2, 5, 3, -127}),
                        onnx_floats("w_s", {2}, {0.25f, 0.5f}),
                        onnx_i8("w_z", {2}, {0, 0}),
                        onnx_scalar("h_s", 2.0f),
                        onnx_u8("h_z", {}, {100}),
                        onnx_u8("b", {2}, {3, 250}),
                        onnx_scalar("b_s", 0.5f),
                        onnx_u8("b_z", {}, {128})};
  parts.nodes = {
      onnx_node("QuantizeLinear", {"x", "x_s", "x_z"}, {"x_q"}),
      onnx_node("QLinearMatMul", {"x_q", "x_s", "x_z", "w", "w_s", "w_z", "h_s", "h_z"}, {"h_q"}),
      onnx_node_of("com.microsoft",
                   "QLinearAdd",
                   {"h_q", "h_s", "h_z", "b", "b_s", "b_z", "h_s", "h_z"},
                   {"y_q"}),
      onnx_node("DequantizeLinear", {"y_q", "h_s", "h_z"}, {"y"})};
  return parts;
}

/// Quant of the input with 8 bits, of weights with 3, a batch norm, Quant with 4 bits.
inline OnnxParts onnx_qonnx() {
  OnnxParts parts{.inputs = {onnx_value("x", {-1, 3})}, .outputs = {onnx_value("y", {-1, 2})}};
  parts.initializers = {onnx_scalar("x_s", 0.5f),
                        onnx_scalar("zero", 0.0f),
                        onnx_scalar("b8", 8.0f),
                        onnx_scalar("b3", 3.0f),
                        onnx_scalar("b4", 4.0f),
                        onnx_floats("fc.weight", {2, 3}, {0.3f, -0.2f, 0.6f, 1.5f, -1.0f, 0.4f}),
                        onnx_floats("w_s", {2, 1}, {0.25f, 0.5f}),
                        onnx_floats("gamma", {2}, {2.0f, -1.0f}),
                        onnx_floats("beta", {2}, {0.25f, 0.5f}),
                        onnx_floats("mean", {2}, {0.5f, -0.5f}),
                        onnx_floats("var", {2}, {0.25f, 4.0f}),
                        onnx_scalar("y_s", 0.5f)};
  const std::vector<Proto> narrow{onnx_attribute("signed", int64_t{1}),
                                  onnx_attribute("narrow", int64_t{1}),
                                  onnx_attribute("rounding_mode", "ROUND")};
  const std::vector<Proto> full{onnx_attribute("signed", int64_t{1}),
                                onnx_attribute("narrow", int64_t{0}),
                                onnx_attribute("rounding_mode", "ROUND")};
  const char* const domain = "qonnx.custom_op.general";
  parts.nodes = {
      onnx_node_of(domain, "Quant", {"x", "x_s", "zero", "b8"}, {"xq"}, full),
      onnx_node_of(domain, "Quant", {"fc.weight", "w_s", "zero", "b3"}, {"wq"}, narrow),
      onnx_node("Transpose", {"wq"}, {"wt"}, {onnx_attribute("perm", std::vector<int64_t>{1, 0})}),
      onnx_node("MatMul", {"xq", "wt"}, {"h"}),
      onnx_node("BatchNormalization",
                {"h", "gamma", "beta", "mean", "var"},
                {"n"},
                {onnx_attribute("epsilon", 1e-5f)}),
      onnx_node_of(domain, "Quant", {"n", "y_s", "zero", "b4"}, {"y"}, full)};
  return parts;
}

/// A convolution with 4-bit weights, ReLU, a max pool that quantizes again, a sum with a branch, a
/// mean, and a Flatten whose quantizer has parameters of its own.
inline OnnxParts onnx_qdq_image() {
  OnnxParts parts{.inputs = {onnx_value("x", {-1, 2, 4, 4})},
                  .outputs = {onnx_value("y", {-1, 2})},
                  .opset = 21};
  std::string nibbles;
  for (int i = 0; i < 18; ++i) nibbles += static_cast<char>(0x3f + 0x10 * (i % 5));
  parts.initializers = {onnx_tensor("conv.weight_quantized", 22, {2, 2, 3, 3}).text(9, nibbles),
                        onnx_floats("w_s", {2}, {0.25f, 0.5f}),
                        onnx_u8("low", {}, {0}),
                        onnx_u8("high", {}, {15})};
  parts.nodes = {onnx_node("DequantizeLinear",
                           {"conv.weight_quantized", "w_s"},
                           {"w"},
                           {onnx_attribute("axis", int64_t{0})})};
  add_qdq(parts, "x", "xd", 0.5f, 10);
  const std::vector<Proto> window{onnx_attribute("kernel_shape", std::vector<int64_t>{3, 3}),
                                  onnx_attribute("pads", std::vector<int64_t>{1, 1, 1, 1})};
  parts.nodes.push_back(onnx_node("Conv", {"xd", "w"}, {"c"}, window, "Conv"));
  parts.nodes.push_back(onnx_node("Relu", {"c"}, {"r"}));
  parts.initializers.push_back(onnx_scalar("r_s", 2.0f));
  parts.initializers.push_back(onnx_u8("r_z", {}, {0}));
  parts.nodes.push_back(onnx_node("QuantizeLinear", {"r", "r_s", "r_z"}, {"r_q"}));
  parts.nodes.push_back(onnx_node("Clip", {"r_q", "low", "high"}, {"r_c"}));
  parts.nodes.push_back(onnx_node("DequantizeLinear", {"r_c", "r_s", "r_z"}, {"rd"}));
  parts.nodes.push_back(onnx_node("Add", {"rd", "xd"}, {"a"}, {}, "Add"));
  add_qdq(parts, "a", "ad", 1.0f, 5);
  parts.nodes.push_back(onnx_node("MaxPool",
                                  {"ad"},
                                  {"p"},
                                  {onnx_attribute("kernel_shape", std::vector<int64_t>{2, 2}),
                                   onnx_attribute("strides", std::vector<int64_t>{2, 2})}));
  add_qdq(parts, "p", "pd", 1.0f, 5);
  parts.nodes.push_back(onnx_node("GlobalAveragePool", {"pd"}, {"m"}, {}, "Mean"));
  add_qdq(parts, "m", "md", 0.75f, 5);
  parts.nodes.push_back(onnx_node("Flatten", {"md"}, {"f"}));
  add_qdq(parts, "f", "y", 0.5f, 3);
  return parts;
}

/// QLinearConv, QLinearSigmoid, QLinearMul, QLinearConcat, QLinearGlobalAveragePool on int8 codes.
inline OnnxParts onnx_qoperator_image() {
  OnnxParts parts{.inputs = {onnx_value("x", {-1, 1, 3, 3})},
                  .outputs = {onnx_value("y", {-1, 4})}};
  parts.initializers = {
      onnx_scalar("s", 0.5f),
      onnx_i8("z", {}, {-3}),
      onnx_i8("w", {2, 1, 3, 3}, {1, -2, 3, -4, 5, -6, 7, -8, 9, 9, -8, 7, -6, 5, -4, 3, -2, 1}),
      onnx_scalar("w_s", 0.125f),
      onnx_i8("w_z", {}, {0}),
      onnx_i32("b", {2}, {40, -40}),
      onnx_scalar("t_s", 0.0078125f),
      onnx_i8("t_z", {}, {-128})};
  const char* const domain = "com.microsoft";
  parts.nodes = {
      onnx_node("QuantizeLinear", {"x", "s", "z"}, {"x_q"}),
      onnx_node("QLinearConv",
                {"x_q", "s", "z", "w", "w_s", "w_z", "s", "z", "b"},
                {"c"},
                {onnx_attribute("pads", std::vector<int64_t>{1, 1, 1, 1})}),
      onnx_node_of(domain, "QLinearSigmoid", {"c", "s", "z", "t_s", "t_z"}, {"t"}),
      onnx_node_of(domain, "QLinearMul", {"c", "s", "z", "t", "t_s", "t_z", "s", "z"}, {"g"}),
      onnx_node_of(domain,
                   "QLinearConcat",
                   {"s", "z", "g", "s", "z", "t", "t_s", "t_z"},
                   {"k"},
                   {onnx_attribute("axis", int64_t{1})}),
      onnx_node_of(domain, "QLinearGlobalAveragePool", {"k", "s", "z", "t_s", "t_z"}, {"m"}),
      onnx_node("Flatten", {"m"}, {"f"}),
      onnx_node("DequantizeLinear", {"f", "t_s", "t_z"}, {"y"})};
  return parts;
}

}  // namespace quantrain::test
