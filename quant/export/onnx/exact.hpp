#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/integer/program.hpp"
#include "layers/onnx/forms.hpp"
#include "layers/onnx/graph_builder.hpp"

namespace quantrain::onnx_export {

using onnx::add_reshape;
using onnx::Form;
using onnx::form_of;
using onnx::image_form;

/// How an initializer holds the weights of a step, for load_exported_onnx().
enum class WeightOrder {
  kConvolution,  ///< [O, C / groups, KH, KW]
  kMatrix,       ///< [inputs, outputs]
  kTransposed,   ///< [outputs, inputs]
};

struct StoredWeights {
  size_t step = 0;
  std::string initializer;
  WeightOrder order = WeightOrder::kConvolution;
};

/// What the forms of operations add to.
struct Export {
  const integer::Program& program;
  onnx::GraphBuilder& graph;
  onnx::HeldValues& values;
  int64_t opset;
  bool int4_weights = false;
  std::vector<StoredWeights> weights{};
  std::set<int> reals{};  ///< accumulators that are held as floats, in real units
  size_t position = 0;    ///< of the step that is being exported
};

/// Adds the operators of a step, which compute the engine's integers.
void add_exact(Export& out, const integer::Step& step);

// Parts that other forms share.

/// Before the first element and after the last one, as ONNX's attribute pads. Rows and columns
/// that no window reads are left out.
std::vector<int64_t> pads(const kernels::Conv2dShape& s);
std::vector<onnx::Attribute> window_attributes(const kernels::Conv2dShape& s);
/// With dilations and groups.
std::vector<onnx::Attribute> convolution_attributes(const kernels::Conv2dShape& s);
Form input_image(const kernels::Conv2dShape& s);
Form output_image(const kernels::Conv2dShape& s);
/// Of a linear layer's input or output.
Form row_form(int64_t rows, int64_t columns);
/// The weights in another order.
std::vector<int8_t> ordered_weights(const integer::Constant& weights,
                                    const kernels::Conv2dShape& s,
                                    WeightOrder order);
/// The forms of a multiplication's operands, which broadcast to each other.
std::pair<Form, Form> mul_forms(const Export& out, const integer::QuantizedMul& op, int a, int b);

}  // namespace quantrain::onnx_export
