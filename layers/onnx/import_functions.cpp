#include <cmath>
#include <limits>
#include <utility>

#include "layers/activation.hpp"
#include "layers/onnx/importer.hpp"

// Functions of one element. What has no layer here, but is one, needs a row in
// framework/autograd/ops/functions.hpp and one here.
namespace quantrain::onnx {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class Layer>
Handler plain() {
  return [](NodeImport& n) { n.give(n.importer.function_of(n.x(), std::make_shared<Layer>())); };
}

void give(NodeImport& n, std::shared_ptr<Module> layer) {
  n.give(n.importer.function_of(n.x(), std::move(layer)));
}

float finite(const NodeImport& n, const char* attribute, float otherwise) {
  const float value = n.node.get(attribute, otherwise);
  if (!std::isfinite(value)) throw Refusal{std::string(attribute) + " is not finite"};
  return value;
}

/// y = min(max(x, low), high). Bounds may be infinite.
void clamp(NodeImport& n, const Value& x, float low, float high) {
  if (std::isnan(low) || std::isnan(high) || low == kInfinity || high == -kInfinity)
    throw Refusal{"with bounds between which there is no number"};
  high = std::max(low, high);  // as ONNX defines it: min(max, max(x, min)) is max if min is above
  if (low <= -std::numeric_limits<float>::max()) low = -kInfinity;
  if (high >= std::numeric_limits<float>::max()) high = kInfinity;
  std::shared_ptr<Module> layer;
  if (low == -kInfinity && high == kInfinity) return n.give(x);
  if (low == 0.0f && high == kInfinity) {
    layer = std::make_shared<ReLU>();
  } else if (low == 0.0f && high == 6.0f) {
    layer = std::make_shared<ReLU6>();
  } else {
    layer = std::make_shared<Clamp>(low, high);
  }
  n.give(n.importer.function_of(x, std::move(layer)));
}

void clip(NodeImport& n) {
  const float low = n.has(1) ? n.scalar(1) : n.node.get("min", -kInfinity);
  const float high = n.has(2) ? n.scalar(2) : n.node.get("max", kInfinity);
  if (low > high) return clamp(n, n.x(), high, high);
  clamp(n, n.x(), low, high);
}

/// Max or Min of a value and constants of one number.
void bound(NodeImport& n, bool is_max) {
  const Value* x = nullptr;
  float low = -kInfinity, high = kInfinity;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (!n.is_constant(i)) {
      if (x != nullptr) throw Refusal{"of two computed values"};
      x = &n.x(i);
    } else if (is_max) {
      low = std::max(low, n.scalar(i));
    } else {
      high = std::min(high, n.scalar(i));
    }
  }
  clamp(n, *x, low, high);
}

void hard_sigmoid(NodeImport& n) {
  give(n, std::make_shared<HardSigmoid>(finite(n, "alpha", 0.2f), finite(n, "beta", 0.5f)));
}

void power(NodeImport& n) {
  const float exponent = n.scalar(1);
  if (static_cast<int64_t>(n.constant(1).dims.size()) > n.x().rank())
    throw Refusal{"with an exponent of more axes"};
  if (exponent == 1.0f) return n.give(n.x());
  if (exponent == 2.0f) return give(n, std::make_shared<Square>());
  if (!(exponent >= 0.0f && std::isfinite(exponent)))
    throw Refusal{"with an exponent that is negative or not finite"};
  give(n, std::make_shared<Power>(exponent));
}

/// y = gamma * elu(x).
void selu(NodeImport& n) {
  const float alpha = finite(n, "alpha", 1.67326319f), gamma = finite(n, "gamma", 1.05070102f);
  if (std::abs(alpha - 1.67326324f) < 1e-6f && std::abs(gamma - 1.05070099f) < 1e-6f)
    return give(n, std::make_shared<SELU>());
  n.give(n.importer.scaled(n.importer.function_of(n.x(), std::make_shared<ELU>(alpha)), gamma));
}

/// y = alpha * elu(x / alpha).
void celu(NodeImport& n) {
  const float alpha = finite(n, "alpha", 1.0f);
  if (alpha == 0.0f) throw Refusal{"alpha is 0"};
  if (alpha == 1.0f) return give(n, std::make_shared<ELU>(1.0f));
  const Value x = n.importer.scaled(n.x(), 1.0f / alpha);
  n.give(n.importer.scaled(n.importer.function_of(x, std::make_shared<ELU>(1.0f)), alpha));
}

void gelu(NodeImport& n) {
  const std::string approximate = n.node.get("approximate", "none");
  if (approximate == "none") return give(n, std::make_shared<GELU>());
  if (approximate == "tanh") return give(n, std::make_shared<GELUTanh>());
  throw Refusal{"approximate " + approximate};
}

}  // namespace

void add_functions(HandlerTable& table) {
  table["Abs"] = plain<Abs>();
  table["Erf"] = plain<Erf>();
  table["Exp"] = plain<Exp>();
  table["HardSwish"] = plain<HardSwish>();
  table["Log"] = plain<Logarithm>();
  table["Mish"] = plain<Mish>();
  table["Relu"] = plain<ReLU>();
  table["Sigmoid"] = plain<Sigmoid>();
  table["Softplus"] = plain<Softplus>();
  table["Sqrt"] = plain<Sqrt>();
  table["Tanh"] = plain<Tanh>();
  table["Elu"] = [](NodeImport& n) { give(n, std::make_shared<ELU>(finite(n, "alpha", 1.0f))); };
  table["LeakyRelu"] = [](NodeImport& n) {
    give(n, std::make_shared<LeakyReLU>(finite(n, "alpha", 0.01f)));
  };
  table["Celu"] = celu;
  table["Clip"] = clip;
  table["Gelu"] = gelu;
  table["HardSigmoid"] = hard_sigmoid;
  table["Max"] = [](NodeImport& n) { bound(n, true); };
  table["Min"] = [](NodeImport& n) { bound(n, false); };
  table["Pow"] = power;
  table["Selu"] = selu;
  // recognize() writes this one: no operator of ONNX is x * sigmoid(x) before Swish of set 24.
  table["Swish"] = [](NodeImport& n) {
    if (n.node.get("alpha", 1.0f) != 1.0f) throw Refusal{"alpha other than 1"};
    give(n, std::make_shared<SiLU>());
  };
}

}  // namespace quantrain::onnx
