#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/layers/onnx/onnx_files.hpp"

// Small networks as exporters write them: seeds of the fuzzer, and examples of the import.
namespace quantrain::test {

/// Numbers from -1 to 1 without a pattern, each exact in a few bits.
inline std::vector<float> onnx_numbers(int64_t count, int64_t seed) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(static_cast<float>((i * 37 + seed * 11) % 33 - 16) / 16.0f);
  return numbers;
}
inline Proto onnx_weights(std::string_view name, const std::vector<int64_t>& dims, int64_t seed) {
  int64_t count = 1;
  for (const int64_t extent : dims) count *= extent;
  return onnx_floats(name, dims, onnx_numbers(count, seed));
}

using Ints = std::vector<int64_t>;

/// PyTorch: a convolution, a pool, and a Flatten whose size is computed from the input's shape.
inline OnnxParts onnx_cnn() {
  return {
      .nodes =
          {onnx_node("Conv",
                     {"x", "conv.weight", "conv.bias"},
                     {"c"},
                     {onnx_attribute("kernel_shape", Ints{3, 3}),
                      onnx_attribute("pads", Ints{1, 1, 1, 1})},
                     "/conv/Conv"),
           onnx_node("Relu", {"c"}, {"r"}, {}, "/Relu"),
           onnx_node(
               "MaxPool",
               {"r"},
               {"p"},
               {onnx_attribute("kernel_shape", Ints{2, 2}), onnx_attribute("strides", Ints{2, 2})},
               "/MaxPool"),
           onnx_node("Shape", {"p"}, {"s"}, {}, "/Shape"),
           onnx_node(
               "Constant", {}, {"zero"}, {onnx_attribute("value", onnx_integers("", {}, {0}))}),
           onnx_node("Gather", {"s", "zero"}, {"n"}, {}, "/Gather"),
           onnx_node(
               "Constant", {}, {"axes"}, {onnx_attribute("value", onnx_integers("", {1}, {0}))}),
           onnx_node("Unsqueeze", {"n", "axes"}, {"n1"}, {}, "/Unsqueeze"),
           onnx_node(
               "Constant", {}, {"minus"}, {onnx_attribute("value", onnx_integers("", {1}, {-1}))}),
           onnx_node("Concat", {"n1", "minus"}, {"shape"}, {onnx_attribute("axis", int64_t{0})}),
           onnx_node("Reshape", {"p", "shape"}, {"f"}, {}, "/Reshape"),
           onnx_node("Gemm",
                     {"f", "fc.weight", "fc.bias"},
                     {"y"},
                     {onnx_attribute("transB", int64_t{1})},
                     "/fc/Gemm")},
      .initializers = {onnx_weights("conv.weight", {3, 2, 3, 3}, 1),
                       onnx_weights("conv.bias", {3}, 2),
                       onnx_weights("fc.weight", {4, 12}, 3),
                       onnx_weights("fc.bias", {4}, 4)},
      .inputs = {onnx_value("x", {-1, 2, 4, 4})},
      .outputs = {onnx_value("y", {-1, 4})}};
}

/// An image that is flattened at once: the linear layer's weights are in the file's order.
inline OnnxParts onnx_flatten() {
  return {.nodes = {onnx_node("Flatten", {"x"}, {"f"}),
                    onnx_node("Gemm", {"f", "w"}, {"y"}, {onnx_attribute("transB", int64_t{1})})},
          .initializers = {onnx_weights("w", {3, 24}, 5)},
          .inputs = {onnx_value("x", {1, 2, 3, 4})},
          .outputs = {onnx_value("y", {1, 3})}};
}

/// tf2onnx: [N, H, W, C] outside, a convolution with "same" padding between two transposes.
inline OnnxParts onnx_transposes() {
  return {
      .nodes = {onnx_node("Transpose", {"x"}, {"t"}, {onnx_attribute("perm", Ints{0, 3, 1, 2})}),
                onnx_node("Conv",
                          {"t", "w"},
                          {"c"},
                          {onnx_attribute("auto_pad", "SAME_UPPER"),
                           onnx_attribute("strides", Ints{2, 2})},
                          "conv"),
                onnx_node("Add", {"c", "b"}, {"a"}),
                onnx_node("Clip", {"a", "zero", "six"}, {"r"}),
                onnx_node("Transpose", {"r"}, {"y"}, {onnx_attribute("perm", Ints{0, 2, 3, 1})})},
      .initializers = {onnx_weights("w", {3, 2, 3, 3}, 6),
                       onnx_weights("b", {1, 3, 1, 1}, 7),
                       onnx_floats("zero", {}, {0}),
                       onnx_floats("six", {}, {6})},
      .inputs = {onnx_value("x", {-1, 4, 4, 2})},
      .outputs = {onnx_value("y", {-1, 2, 2, 3})}};
}

/// A batch norm after an activation, a depthwise convolution, squeeze and excitation.
inline OnnxParts onnx_squeeze_excite() {
  return {.nodes = {onnx_node("HardSwish", {"x"}, {"h"}),
                    onnx_node(
                        "BatchNormalization", {"h", "bn.weight", "bn.bias", "mean", "var"}, {"n"}),
                    onnx_node("Conv",
                              {"n", "dw.weight"},
                              {"d"},
                              {onnx_attribute("group", int64_t{4}),
                               onnx_attribute("pads", Ints{1, 1, 1, 1})}),
                    onnx_node("GlobalAveragePool", {"d"}, {"g"}),
                    onnx_node("Conv", {"g", "se.weight"}, {"s"}),
                    onnx_node("HardSigmoid", {"s"}, {"gate"}),
                    onnx_node("Mul", {"gate", "d"}, {"m"}),
                    onnx_node("Add", {"m", "h"}, {"sum"}),
                    onnx_node("ReduceMean",
                              {"sum"},
                              {"y"},
                              {onnx_attribute("axes", Ints{2, 3}),
                               onnx_attribute("keepdims", int64_t{0})})},
          .initializers = {onnx_weights("bn.weight", {4}, 8),
                           onnx_weights("bn.bias", {4}, 9),
                           onnx_weights("mean", {4}, 10),
                           onnx_floats("var", {4}, {1, 0.5f, 2, 3}),
                           onnx_weights("dw.weight", {4, 1, 3, 3}, 11),
                           onnx_weights("se.weight", {4, 4, 1, 1}, 12)},
          .inputs = {onnx_value("x", {-1, 4, 3, 3})},
          .outputs = {onnx_value("y", {-1, 4})}};
}

/// A perceptron with GELU, written with Erf as PyTorch writes it.
inline OnnxParts onnx_gelu() {
  return {.nodes = {onnx_node("MatMul", {"x", "w1"}, {"m"}, {}, "/fc1/MatMul"),
                    onnx_node("Add", {"fc1.bias", "m"}, {"h"}, {}, "/fc1/Add"),
                    onnx_node("Div", {"h", "root"}, {"d"}),
                    onnx_node("Erf", {"d"}, {"e"}),
                    onnx_node("Add", {"e", "one"}, {"a"}),
                    onnx_node("Mul", {"h", "a"}, {"p"}),
                    onnx_node("Mul", {"p", "half"}, {"g"}),
                    onnx_node("MatMul", {"g", "w2"}, {"y"}, {}, "/fc2/MatMul")},
          .initializers = {onnx_weights("w1", {3, 5}, 13),
                           onnx_weights("fc1.bias", {5}, 14),
                           onnx_floats("root", {}, {1.4142135381698608f}),
                           onnx_floats("one", {}, {1}),
                           onnx_floats("half", {}, {0.5f}),
                           onnx_weights("w2", {5, 2}, 15)},
          .inputs = {onnx_value("x", {-1, 3})},
          .outputs = {onnx_value("y", {-1, 2})}};
}

/// ShuffleNet's shuffle of channels, between convolutions.
inline OnnxParts onnx_shuffle() {
  return {
      .nodes = {onnx_node("Conv", {"x", "a.weight"}, {"a"}, {onnx_attribute("group", int64_t{2})}),
                onnx_node("Reshape", {"a", "split"}, {"r"}),
                onnx_node("Transpose", {"r"}, {"t"}, {onnx_attribute("perm", Ints{0, 2, 1, 3, 4})}),
                onnx_node("Reshape", {"t", "joined"}, {"s"}),
                onnx_node("Conv", {"s", "b.weight"}, {"d"}, {onnx_attribute("group", int64_t{6})}),
                onnx_node("Conv", {"d", "c.weight"}, {"y"})},
      .initializers = {onnx_weights("a.weight", {6, 2, 1, 1}, 16),
                       onnx_integers("split", {5}, {-1, 2, 3, 2, 2}),
                       onnx_integers("joined", {4}, {-1, 6, 2, 2}),
                       onnx_weights("b.weight", {6, 1, 1, 1}, 17),
                       onnx_weights("c.weight", {2, 6, 1, 1}, 18)},
      .inputs = {onnx_value("x", {-1, 4, 2, 2})},
      .outputs = {onnx_value("y", {-1, 2, 2, 2})}};
}

/// ShuffleNet v2: a shuffle of channels, of which one half goes through a convolution.
inline OnnxParts onnx_halves() {
  const std::vector<Proto> axis{onnx_attribute("axis", int64_t{1})};
  return {
      .nodes = {onnx_node("Conv", {"x", "a.weight"}, {"a"}),
                onnx_node("Reshape", {"a", "split"}, {"r"}),
                onnx_node("Transpose", {"r"}, {"t"}, {onnx_attribute("perm", Ints{0, 2, 1, 3, 4})}),
                onnx_node("Reshape", {"t", "joined"}, {"s"}),
                onnx_node("Slice", {"s", "zero", "two", "one"}, {"first"}),
                onnx_node("Slice", {"s", "two", "four", "one"}, {"second"}),
                onnx_node("Conv", {"second", "b.weight"}, {"b"}),
                onnx_node("Concat", {"first", "b"}, {"y"}, axis)},
      .initializers = {onnx_weights("a.weight", {4, 2, 1, 1}, 16),
                       onnx_integers("split", {5}, {-1, 2, 2, 2, 2}),
                       onnx_integers("joined", {4}, {-1, 4, 2, 2}),
                       onnx_integers("zero", {1}, {0}),
                       onnx_integers("one", {1}, {1}),
                       onnx_integers("two", {1}, {2}),
                       onnx_integers("four", {1}, {4}),
                       onnx_weights("b.weight", {2, 2, 1, 1}, 17)},
      .inputs = {onnx_value("x", {-1, 2, 2, 2})},
      .outputs = {onnx_value("y", {-1, 4, 2, 2})}};
}

/// U-Net: a pool, an upsampling and a concatenation with what came before the pool.
inline OnnxParts onnx_unet() {
  return {
      .nodes = {onnx_node(
                    "Conv", {"x", "a.weight"}, {"a"}, {onnx_attribute("pads", Ints{1, 1, 1, 1})}),
                onnx_node("MaxPool",
                          {"a"},
                          {"p"},
                          {onnx_attribute("kernel_shape", Ints{2, 2}),
                           onnx_attribute("strides", Ints{2, 2})}),
                onnx_node("Resize",
                          {"p", "", "scales"},
                          {"u"},
                          {onnx_attribute("mode", "nearest"),
                           onnx_attribute("coordinate_transformation_mode", "asymmetric"),
                           onnx_attribute("nearest_mode", "floor")}),
                onnx_node("Concat", {"u", "a"}, {"j"}, {onnx_attribute("axis", int64_t{1})}),
                onnx_node("Conv", {"j", "b.weight"}, {"b"}),
                onnx_node("Sigmoid", {"b"}, {"y"})},
      .initializers = {onnx_weights("a.weight", {2, 1, 3, 3}, 19),
                       onnx_floats("scales", {4}, {1, 1, 2, 2}),
                       onnx_weights("b.weight", {1, 4, 1, 1}, 20)},
      .inputs = {onnx_value("x", {-1, 1, 4, 4})},
      .outputs = {onnx_value("y", {-1, 1, 4, 4})}};
}

/// PyTorch's interpolate(size): the sizes are joined from the input's shape.
inline OnnxParts onnx_interpolate() {
  return {
      .nodes = {onnx_node("Conv", {"x", "w"}, {"c"}),
                onnx_node("Shape", {"c"}, {"s"}),
                onnx_node("Slice", {"s", "zero", "two", "zero"}, {"nc"}),
                onnx_node("Concat", {"nc", "hw"}, {"sizes"}, {onnx_attribute("axis", int64_t{0})}),
                onnx_node("Resize",
                          {"c", "", "", "sizes"},
                          {"y"},
                          {onnx_attribute("mode", "nearest"),
                           onnx_attribute("coordinate_transformation_mode", "asymmetric"),
                           onnx_attribute("nearest_mode", "floor")})},
      .initializers = {onnx_weights("w", {2, 1, 1, 1}, 22),
                       onnx_integers("zero", {1}, {0}),
                       onnx_integers("two", {1}, {2}),
                       onnx_integers("hw", {2}, {6, 6})},
      .inputs = {onnx_value("x", {-1, 1, 2, 3})},
      .outputs = {onnx_value("y", {-1, 2, 6, 6})}};
}

/// A sequence in PyTorch's order for recurrent layers, [T, N, F], between transposes.
inline OnnxParts onnx_sequence() {
  return {.nodes = {onnx_node("Transpose", {"x"}, {"t"}, {onnx_attribute("perm", Ints{1, 0, 2})}),
                    onnx_node("MatMul", {"t", "w"}, {"m"}),
                    onnx_node("Sigmoid", {"m"}, {"s"}),
                    onnx_node("Transpose", {"s"}, {"u"}, {onnx_attribute("perm", Ints{1, 0, 2})}),
                    onnx_node(
                        "ReduceMean",
                        {"u"},
                        {"y"},
                        {onnx_attribute("axes", Ints{1}), onnx_attribute("keepdims", int64_t{0})})},
          .initializers = {onnx_weights("w", {3, 2}, 23)},
          .inputs = {onnx_value("x", {-1, 5, 3})},
          .outputs = {onnx_value("y", {-1, 2})}};
}

/// A signal [N, C, L]: dilated convolution, softmax over its channels.
inline OnnxParts onnx_signal() {
  return {
      .nodes = {onnx_node("Pad", {"x", "pads"}, {"p"}),
                onnx_node(
                    "Conv", {"p", "conv.weight"}, {"c"}, {onnx_attribute("dilations", Ints{2})}),
                onnx_node("PRelu", {"c", "slope"}, {"r"}),
                onnx_node(
                    "ReduceMax",
                    {"r"},
                    {"m"},
                    {onnx_attribute("axes", Ints{2}), onnx_attribute("keepdims", int64_t{0})}),
                onnx_node("Softmax", {"m"}, {"y"}, {onnx_attribute("axis", int64_t{1})})},
      .initializers = {onnx_integers("pads", {6}, {0, 0, 2, 0, 0, 0}),
                       onnx_weights("conv.weight", {3, 2, 2}, 21),
                       onnx_floats("slope", {3, 1}, {0.5f, 0.25f, -1})},
      .inputs = {onnx_value("x", {-1, 2, 6})},
      .outputs = {onnx_value("y", {-1, 3})}};
}

inline std::vector<std::pair<std::string, OnnxParts>> onnx_networks() {
  return {{"gemm", onnx_gemm()},
          {"cnn", onnx_cnn()},
          {"flatten", onnx_flatten()},
          {"transposes", onnx_transposes()},
          {"squeeze_excite", onnx_squeeze_excite()},
          {"gelu", onnx_gelu()},
          {"shuffle", onnx_shuffle()},
          {"halves", onnx_halves()},
          {"unet", onnx_unet()},
          {"interpolate", onnx_interpolate()},
          {"sequence", onnx_sequence()},
          {"signal", onnx_signal()}};
}

}  // namespace quantrain::test
