#include <cmath>
#include <limits>

#include "layers/onnx/exporter.hpp"

// Functions of one element. Those that ONNX has in later operator sets only are written as their
// formulas.
namespace quantrain::onnx {
namespace {

/// Adds the operators of a function of x.
using Formula = std::function<std::string(NodeExport&, const std::string& x)>;

Exporter function_exporter(Formula formula) {
  return [formula = std::move(formula)](NodeExport& out) {
    const Form form = out.first_form(0);
    out.give(form, formula(out, out.x(form)));
  };
}

/// A function that is one operator, with these attributes of the node, which have ONNX's names.
Exporter operator_exporter(std::string op_type, std::vector<std::string> names = {}) {
  return function_exporter([=](NodeExport& out, const std::string& x) {
    std::vector<Attribute> attributes;
    for (const std::string& name : names)
      attributes.push_back({name, static_cast<float>(out.attributes.real(name))});
    return out.add(op_type, {x}, std::move(attributes));
  });
}

std::string number_constant(NodeExport& out, float value) { return out.graph.scalar<float>(value); }

std::string clip_formula(NodeExport& out, const std::string& x, float low, float high) {
  const auto bound = [&](float value) {
    return std::isfinite(value) ? number_constant(out, value) : std::string();
  };
  std::vector<std::string> inputs{x, bound(low), bound(high)};
  while (inputs.back().empty()) inputs.pop_back();
  return inputs.size() == 1 ? x : out.add("Clip", std::move(inputs));
}

std::string hard_sigmoid_formula(NodeExport& out, const std::string& x, double alpha, double beta) {
  return out.add("HardSigmoid",
                 {x},
                 {{"alpha", static_cast<float>(alpha)}, {"beta", static_cast<float>(beta)}});
}

std::string gelu_formula(NodeExport& out, const std::string& x) {
  const std::string root = out.add("Div", {x, number_constant(out, std::sqrt(2.0f))});
  const std::string erf = out.add("Erf", {root});
  const std::string sum = out.add("Add", {erf, number_constant(out, 1.0f)});
  return out.add("Mul", {out.add("Mul", {x, sum}), number_constant(out, 0.5f)});
}

// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
std::string gelu_tanh_formula(NodeExport& out, const std::string& x) {
  const std::string cube = out.add("Pow", {x, number_constant(out, 3.0f)});
  const std::string small = out.add("Mul", {cube, number_constant(out, 0.044715f)});
  const std::string sum = out.add("Add", {x, small});
  const std::string u = out.add("Mul", {sum, number_constant(out, 0.7978845608028654f)});
  const std::string one = out.add("Add", {out.add("Tanh", {u}), number_constant(out, 1.0f)});
  return out.add("Mul", {out.add("Mul", {x, number_constant(out, 0.5f)}), one});
}

std::string power_formula(NodeExport& out, std::string x) {
  const auto exponent = static_cast<float>(out.attributes.real("exponent"));
  // Below 0, only whole powers are defined; ours takes 0 there.
  if (exponent != std::floor(exponent)) x = out.add("Relu", {x});
  return out.add("Pow", {x, number_constant(out, exponent)});
}

void export_prelu(NodeExport& out) {
  const std::vector<float> slopes = out.floats(1);
  const auto channels = static_cast<int64_t>(slopes.size());
  const Shape sample = out.sample();
  Form form = out.first_form(0);
  if (!form.channels_first) form = form_of(sample);
  std::vector<int64_t> dims = channel_dims(form, channels);
  if (dims.empty()) dims = {1};
  out.give(form, out.add("PRelu", {out.x(form), out.constant(1, dims)}));
}

}  // namespace

void add_function_exporters(ExporterTable& table) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  table["relu"] = operator_exporter("Relu");
  table["relu6"] = function_exporter(
      [](NodeExport& out, const std::string& x) { return clip_formula(out, x, 0.0f, 6.0f); });
  table["sigmoid"] = operator_exporter("Sigmoid");
  table["tanh"] = operator_exporter("Tanh");
  table["exp"] = operator_exporter("Exp");
  table["erf"] = operator_exporter("Erf");
  table["abs"] = operator_exporter("Abs");
  table["softplus"] = operator_exporter("Softplus");
  table["selu"] = operator_exporter("Selu");
  table["leaky_relu"] = operator_exporter("LeakyRelu", {"alpha"});
  table["elu"] = operator_exporter("Elu", {"alpha"});
  table["hard_sigmoid"] = operator_exporter("HardSigmoid", {"alpha", "beta"});
  table["hard_swish"] = function_exporter([](NodeExport& out, const std::string& x) {
    return out.add("Mul", {x, hard_sigmoid_formula(out, x, 1.0 / 6.0, 0.5)});
  });
  table["silu"] = function_exporter([](NodeExport& out, const std::string& x) {
    return out.add("Mul", {x, out.add("Sigmoid", {x})});
  });
  table["mish"] = function_exporter([](NodeExport& out, const std::string& x) {
    return out.add("Mul", {x, out.add("Tanh", {out.add("Softplus", {x})})});
  });
  table["gelu"] = function_exporter(gelu_formula);
  table["gelu_tanh"] = function_exporter(gelu_tanh_formula);
  table["square"] = function_exporter([](NodeExport& out, const std::string& x) {
    return out.add("Mul", {x, x});
  });
  table["power"] = function_exporter(power_formula);
  table["sqrt"] = function_exporter([](NodeExport& out, const std::string& x) {
    return out.add("Sqrt", {out.add("Relu", {x})});
  });
  table["log"] = function_exporter([](NodeExport& out, const std::string& x) {
    return out.add("Log", {clip_formula(out, x, std::numeric_limits<float>::min(), kInfinity)});
  });
  table["clip"] = function_exporter([](NodeExport& out, const std::string& x) {
    return clip_formula(out,
                        x,
                        static_cast<float>(out.attributes.real("min")),
                        static_cast<float>(out.attributes.real("max")));
  });
  table["prelu"] = export_prelu;
}

}  // namespace quantrain::onnx
