#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/arithmetic/qparams.hpp"
#include "layers/onnx/model.hpp"

// The way of a quantized file: rewrite() makes a graph of floats of any dialect; layers/onnx
// imports that; place() finds the slots for the parameters.
namespace quantrain::onnx {

/// The domain and type of the nodes that stand for quantizers: y = the real value of x's code.
inline constexpr const char* kOwnDomain = "quantrain";
inline constexpr const char* kQuantizer = "Quantizer";
/// Their attribute: an index into FloatGraph::quantizers.
inline constexpr const char* kIndex = "index";

/// What is known of constants that were codes in the file.
struct WeightCodes {
  QType type;
  bool per_channel = false;
  /// Why they cannot be weights here; empty if they can.
  std::string problem{};
};

/// A quantized network as operators of floats, with its quantizers as nodes of their own.
struct FloatGraph {
  Model model;
  /// For each constant of `weights`, a tensor that has its scale in place of each element. Whatever
  /// moves the elements of weights on their way to a layer also moves these.
  std::vector<StoredTensor> scales{};
  std::vector<QParams> quantizers{};
  std::map<std::string, WeightCodes> weights{};  ///< by the names of constants
  std::string dialect{};                         ///< "QDQ", "QOperator", "QONNX"
};

/// Rewrites the operators of QDQ (QuantizeLinear and DequantizeLinear), QOperator (QLinearConv and
/// others) and QONNX (Quant and others).
/// Throws: DataError that lists everything that has no counterpart here.
FloatGraph rewrite(const Model& model);

/// Whether rewrite() is needed: whether the graph has an operator of one of these dialects.
bool is_quantized(const Graph& graph);

}  // namespace quantrain::onnx
