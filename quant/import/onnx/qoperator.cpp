#include <algorithm>

#include "framework/core/rounding.hpp"
#include "quant/import/onnx/rewriter.hpp"

// Operators that read and give codes: QLinearConv, QLinearMatMul, and those of ONNX Runtime.
namespace quantrain::onnx {
namespace {

/// Adds the operator of floats, and the quantizer of its result.
void give(Rewriter& r,
          const Node& n,
          const char* op_type,
          std::vector<std::string> inputs,
          const QParams& params,
          std::vector<Attribute> attributes) {
  Node node;
  node.name = n.name.empty() ? n.outputs[0] : n.name;
  node.op_type = op_type;
  node.inputs = std::move(inputs);
  node.outputs = {n.outputs[0] + "/real"};
  node.attributes = std::move(attributes);
  r.add(std::move(node));
  r.quantize(n.outputs[0] + "/real", n.outputs[0], params);
}

/// Adds scale_x scale_w bias, in real numbers, and returns its name.
std::string add_bias(Rewriter& r, const Node& n, size_t bias, size_t x_scale, size_t w_scale) {
  const DefaultRounding rounding;
  const ConstantCodes codes = r.codes(input(n, bias));
  const double scale_x = r.number(input(n, x_scale));
  const std::vector<float> scale_w = r.floats(input(n, w_scale));
  const size_t channels = codes.values.size();
  if (scale_w.empty() || (scale_w.size() != 1 && scale_w.size() != channels))
    throw Refusal{"a bias of another size than its scales"};
  std::vector<float> values;
  for (size_t c = 0; c < channels; ++c) {
    const double scale = scale_x * double{scale_w[scale_w.size() == 1 ? 0 : c]};
    values.push_back(static_cast<float>(static_cast<double>(codes.values[c]) * scale));
  }
  const std::string name = n.outputs[0] + "/bias";
  r.add_floats(name, codes.dims, values);
  return name;
}

void conv(Rewriter& r, const Node& n) {
  r.begin(n, "QOperator");
  std::vector<std::string> inputs{r.operand(n, 0), r.operand(n, 3, 0)};
  if (!input(n, 8).empty()) inputs.push_back(add_bias(r, n, 8, 1, 4));
  give(r, n, "Conv", std::move(inputs), r.value_params(input(n, 6), input(n, 7)), n.attributes);
}

void matmul(Rewriter& r, const Node& n) {
  r.begin(n, "QOperator");
  // Scales of the left operand are those of its rows, those of the right one of its columns.
  std::vector<std::string> inputs;
  for (const size_t i : {size_t{0}, size_t{3}}) {
    const std::string& name = input(n, i);
    const auto rank = r.is_constant(name) ? static_cast<int>(r.codes(name).dims.size()) : 0;
    inputs.push_back(r.operand(n, i, std::max(rank - (i == 0 ? 2 : 1), 0)));
  }
  give(r, n, "MatMul", std::move(inputs), r.value_params(input(n, 6), input(n, 7)), {});
}

void gemm(Rewriter& r, const Node& n) {
  r.begin(n, "QOperator");
  if (input(n, 7).empty()) throw Refusal{"gives sums, which have no scale of their own"};
  const bool is_transposed = n.get("transB", int64_t{0}) != 0;
  std::vector<std::string> inputs{r.operand(n, 0), r.operand(n, 3, is_transposed ? 0 : 1)};
  if (!input(n, 6).empty()) {
    if (n.get("alpha", 1.0f) != 1.0f) throw Refusal{"alpha other than 1 with a bias"};
    inputs.push_back(add_bias(r, n, 6, 1, 4));
  }
  give(r, n, "Gemm", std::move(inputs), r.value_params(input(n, 7), input(n, 8)), n.attributes);
}

/// Operators of one or two values whose parameters come after the operands'.
Rewrite function(const char* op_type, size_t operands) {
  return [=](Rewriter& r, const Node& n) {
    r.begin(n, "QOperator");
    if (n.get("channels_last", int64_t{0}) != 0) throw Refusal{"channels_last"};
    std::vector<std::string> inputs;
    for (size_t i = 0; i < operands; ++i) inputs.push_back(r.operand(n, 3 * i));
    std::vector<Attribute> attributes;
    for (const Attribute& attribute : n.attributes) {
      if (attribute.name != "channels_last" && attribute.name != "opset")
        attributes.push_back(attribute);
    }
    const QParams y = r.value_params(input(n, 3 * operands), input(n, 3 * operands + 1));
    give(r, n, op_type, std::move(inputs), y, std::move(attributes));
  };
}

/// Operator set 13 changed which axes a softmax goes over. `opset` says which are meant.
void softmax(Rewriter& r, const Node& n) {
  if ((n.get("opset", r.opset()) < 13) != (r.opset() < 13))
    throw Refusal{"its operator set is not that of the file"};
  Node copy = n;
  if (n.find("axis") == nullptr) copy.attributes.push_back({"axis", int64_t{-1}});
  function("Softmax", 1)(r, copy);
}

void concat(Rewriter& r, const Node& n) {
  r.begin(n, "QOperator");
  if (n.inputs.size() < 5 || n.inputs.size() % 3 != 2)
    throw Refusal{"a number of inputs that it cannot have"};
  std::vector<std::string> inputs;
  for (size_t i = 2; i < n.inputs.size(); i += 3) inputs.push_back(r.operand(n, i));
  give(r, n, "Concat", std::move(inputs), r.value_params(input(n, 0), input(n, 1)), n.attributes);
}

}  // namespace

void add_qoperator(RewriteTable& table) {
  table[".QLinearConv"] = conv;
  table[".QLinearMatMul"] = matmul;
  table["com.microsoft.QGemm"] = gemm;
  table["com.microsoft.QLinearConcat"] = concat;
  table["com.microsoft.QLinearSoftmax"] = softmax;
  for (const auto& [name, op_type, operands] :
       {std::tuple{"QLinearAdd", "Add", size_t{2}},
        std::tuple{"QLinearMul", "Mul", size_t{2}},
        std::tuple{"QLinearSigmoid", "Sigmoid", size_t{1}},
        std::tuple{"QLinearLeakyRelu", "LeakyRelu", size_t{1}},
        std::tuple{"QLinearAveragePool", "AveragePool", size_t{1}},
        std::tuple{"QLinearGlobalAveragePool", "GlobalAveragePool", size_t{1}},
        std::tuple{"QLinearReduceMean", "ReduceMean", size_t{1}}})
    table[std::string("com.microsoft.") + name] = function(op_type, operands);
}

}  // namespace quantrain::onnx
