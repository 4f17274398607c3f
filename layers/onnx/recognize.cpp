#include "layers/onnx/recognize.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "framework/autograd/ops/functions.hpp"
#include "layers/onnx/constant.hpp"

namespace quantrain::onnx {
namespace {

/// Points at which functions are compared: they tell apart the known ones and their pieces, and the
/// far ones find bounds. exp() of each is finite.
constexpr std::array kPoints{-300.0, -80.0, -40.0,  -20.0, -12.0,   12.0,   20.0,   40.0,
                             80.0,   300.0, -9.5,   -6.25, -4.0,    -3.125, -2.875, -2.0,
                             -1.375, -1.0,  -0.625, -0.25, -0.0625, 0.0,    0.0625, 0.375,
                             0.75,   1.0,   1.5,    2.125, 2.75,    3.25,   4.5,    7.0};
using Values = std::array<double, kPoints.size()>;

/// What a node computes from one value: f(base).
struct Expression {
  std::string base;
  Values values;
  int nodes = 0;
};

struct Known {
  const char* op_type;
  const char* attribute;  // and its value, if there is one
  const char* text;
  float alpha, beta;  // of HardSigmoid
  functions::Function function;
};

const std::vector<Known>& known_functions() {
  static const std::vector<Known> all{
      {"Gelu", nullptr, nullptr, 0, 0, functions::gelu()},
      {"Gelu", "approximate", "tanh", 0, 0, functions::gelu_tanh()},
      {"Swish", nullptr, nullptr, 0, 0, functions::silu()},
      {"HardSwish", nullptr, nullptr, 0, 0, functions::hard_swish()},
      {"Mish", nullptr, nullptr, 0, 0, functions::mish()},
      {"HardSigmoid", nullptr, nullptr, 1.0f / 6.0f, 0.5f, functions::hard_sigmoid()},
      {"HardSigmoid", nullptr, nullptr, 0.2f, 0.5f, functions::hard_sigmoid(0.2f, 0.5f)},
      {"Softplus", nullptr, nullptr, 0, 0, functions::softplus()}};
  return all;
}

/// The constants are float32, so the values agree to a few units of that.
bool equals(const Values& values, const functions::Function& function) {
  for (size_t i = 0; i < kPoints.size(); ++i) {
    const double expected = function->f(kPoints[i]);
    if (!(std::abs(values[i] - expected) <= 2e-6 * (1.0 + std::abs(expected)))) return false;
  }
  return true;
}

class Recognizer {
 public:
  explicit Recognizer(const Graph& graph) : graph_(graph) {
    for (const StoredTensor& tensor : graph.initializers) note(tensor.name, tensor);
  }

  Graph run() {
    Graph result = graph_;
    for (Node& node : result.nodes) {
      if (!node.domain.empty() || node.outputs.size() != 1) continue;
      if (node.op_type == "Constant") {
        const Attribute* const value = node.find("value");
        if (value != nullptr && std::holds_alternative<StoredTensor>(value->value))
          note(node.outputs[0], std::get<StoredTensor>(value->value));
        continue;
      }
      std::optional<Expression> expression = expression_of(node);
      if (!expression) continue;
      if (expression->nodes > 1) replace(node, *expression);
      expressions_.emplace(node.outputs[0], std::move(*expression));
    }
    return result;
  }

 private:
  void note(const std::string& name, const StoredTensor& tensor) {
    if (tensor.elements() != 1 || bits_of(tensor.type) < 8) return;
    scalars_[name] = to_constant(tensor).floats()[0];
  }

  static void replace(Node& node, const Expression& expression) {
    for (const Known& known : known_functions()) {
      if (!equals(expression.values, known.function)) continue;
      node.op_type = known.op_type;
      node.inputs = {expression.base};
      node.attributes.clear();
      if (known.attribute != nullptr)
        node.attributes.push_back({known.attribute, std::string(known.text)});
      if (known.alpha != 0.0f) {
        node.attributes.push_back({"alpha", known.alpha});
        node.attributes.push_back({"beta", known.beta});
      }
      return;
    }
  }

  /// An operand as a function of `base`, which is set if it is empty. Nothing if it depends on
  /// another value.
  std::optional<Expression> operand(const std::string& name, const std::string& base) const {
    const auto scalar = scalars_.find(name);
    Expression expression{base, {}, 0};
    if (scalar != scalars_.end()) {
      expression.values.fill(scalar->second);
      return expression;
    }
    if (name == base) {
      std::copy(kPoints.begin(), kPoints.end(), expression.values.begin());
      return expression;
    }
    const auto known = expressions_.find(name);
    if (known == expressions_.end() || known->second.base != base) return std::nullopt;
    return known->second;
  }

  std::optional<Expression> expression_of(const Node& node) const {
    // The base is that of the first operand with an expression, else the first that is no number.
    std::string base;
    for (const std::string& input : node.inputs) {
      const auto known = expressions_.find(input);
      if (known != expressions_.end()) base = known->second.base;
    }
    for (const std::string& input : node.inputs) {
      if (base.empty() && !input.empty() && !scalars_.contains(input)) base = input;
    }
    if (base.empty()) return std::nullopt;
    std::vector<Expression> operands;
    int nodes = 1;
    for (const std::string& input : node.inputs) {
      if (input.empty()) return std::nullopt;
      std::optional<Expression> one = operand(input, base);
      if (!one) return std::nullopt;
      nodes += one->nodes;
      operands.push_back(std::move(*one));
    }
    constexpr int kMostNodes = 64;
    if (nodes > kMostNodes) return std::nullopt;
    Expression y{base, {}, nodes};
    for (size_t i = 0; i < kPoints.size(); ++i) {
      const double a = operands[0].values[i];
      const double b = operands.size() > 1 ? operands[1].values[i] : 0.0;
      const std::optional<double> value =
          operands.size() == 1   ? of_one(node, a)
          : operands.size() == 2 ? of_two(node.op_type, a, b)
          : operands.size() == 3 && node.op_type == "Clip"
              ? std::optional(std::min(std::max(a, b), operands[2].values[i]))
              : std::nullopt;
      if (!value) return std::nullopt;
      y.values[i] = *value;
    }
    return y;
  }

  static std::optional<double> of_one(const Node& node, double v) {
    const std::string& type = node.op_type;
    if (type == "Erf") return std::erf(v);
    if (type == "Exp") return std::exp(v);
    if (type == "Log") return std::log(v);
    if (type == "Neg") return -v;
    if (type == "Relu") return std::max(v, 0.0);
    if (type == "Sigmoid") return 1.0 / (1.0 + std::exp(-v));
    if (type == "Softplus") return std::log1p(std::exp(-std::abs(v))) + std::max(v, 0.0);
    if (type == "Tanh") return std::tanh(v);
    if (type == "Identity") return v;
    if (type == "HardSigmoid") {
      return std::clamp(static_cast<double>(node.get("alpha", 0.2f)) * v +
                            static_cast<double>(node.get("beta", 0.5f)),
                        0.0,
                        1.0);
    }
    if (type == "Clip") {
      const double low = node.get("min", -std::numeric_limits<float>::infinity());
      const double high = node.get("max", std::numeric_limits<float>::infinity());
      return std::min(std::max(v, low), high);
    }
    return std::nullopt;
  }

  static std::optional<double> of_two(const std::string& type, double a, double b) {
    if (type == "Add") return a + b;
    if (type == "Sub") return a - b;
    if (type == "Mul") return a * b;
    if (type == "Div") return a / b;
    if (type == "Pow") return std::pow(a, b);
    if (type == "Max" || type == "Clip") return std::max(a, b);
    if (type == "Min") return std::min(a, b);
    return std::nullopt;
  }

  const Graph& graph_;
  std::unordered_map<std::string, float> scalars_;
  std::unordered_map<std::string, Expression> expressions_;
};

}  // namespace

Graph recognize(const Graph& graph) { return Recognizer(graph).run(); }

}  // namespace quantrain::onnx
