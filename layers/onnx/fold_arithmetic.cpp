#include "layers/onnx/fold_arithmetic.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "framework/core/rounding.hpp"
#include "framework/core/shape.hpp"

namespace quantrain::onnx {
namespace {

struct Unary {
  std::function<float(float)> of_float;
  std::function<Extent(Extent)> of_extent;
};
struct Binary {
  std::function<float(float, float)> of_floats;
  std::function<Extent(Extent, Extent)> of_extents;
  bool gives_bools = false;
};

Extent no_extent(Extent) { throw Refusal{"is a function of floats"}; }

/// -1, 0 or 1: how two integers compare.
int compare(const Extent& a, const Extent& b) {
  if (a.batch == b.batch) return a.n < b.n ? -1 : a.n > b.n ? 1 : 0;
  // A batch has at least one sample, so multiples of it compare with numbers up to 0.
  const Extent& batch = a.batch ? a : b;
  const Extent& other = a.batch ? b : a;
  const int sign = a.batch ? 1 : -1;
  if (batch.n > 0 && other.n <= 0) return sign;
  if (batch.n < 0 && other.n >= 0) return -sign;
  throw Refusal{"compares the number of samples in a batch"};
}
Extent boolean(bool value) { return {value ? 1 : 0}; }

const std::map<std::string, Unary>& unaries() {
  static const std::map<std::string, Unary> all{
      {"Abs",
       {[](float v) { return std::abs(v); },
        [](Extent v) { return v.n < 0 ? v * Extent{-1} : v; }}},
      {"Ceil", {[](float v) { return std::ceil(v); }, no_extent}},
      {"Exp", {[](float v) { return std::exp(v); }, no_extent}},
      {"Floor", {[](float v) { return std::floor(v); }, no_extent}},
      {"Log", {[](float v) { return std::log(v); }, no_extent}},
      {"Neg", {[](float v) { return -v; }, [](Extent v) { return v * Extent{-1}; }}},
      {"Not",
       {[](float v) { return v == 0.0f ? 1.0f : 0.0f; },
        [](Extent v) { return boolean(v.n == 0); }}},
      {"Reciprocal", {[](float v) { return 1.0f / v; }, no_extent}},
      {"Round", {[](float v) { return std::nearbyint(v); }, no_extent}},
      {"Sqrt", {[](float v) { return std::sqrt(v); }, no_extent}},
  };
  return all;
}

const std::map<std::string, Binary>& binaries() {
  static const std::map<std::string, Binary> all{
      {"Add", {[](float a, float b) { return a + b; }, [](Extent a, Extent b) { return a + b; }}},
      {"Sub", {[](float a, float b) { return a - b; }, [](Extent a, Extent b) { return a - b; }}},
      {"Mul", {[](float a, float b) { return a * b; }, [](Extent a, Extent b) { return a * b; }}},
      {"Div", {[](float a, float b) { return a / b; }, [](Extent a, Extent b) { return a / b; }}},
      {"Pow",
       {[](float a, float b) { return std::pow(a, b); },
        [](Extent, Extent) -> Extent { throw Refusal{"is a power of integers"}; }}},
      {"Max",
       {[](float a, float b) { return std::max(a, b); },
        [](Extent a, Extent b) { return compare(a, b) < 0 ? b : a; }}},
      {"Min",
       {[](float a, float b) { return std::min(a, b); },
        [](Extent a, Extent b) { return compare(a, b) < 0 ? a : b; }}},
      {"Equal",
       {[](float a, float b) { return a == b ? 1.0f : 0.0f; },
        [](Extent a, Extent b) { return boolean(compare(a, b) == 0); },
        true}},
      {"Less",
       {[](float a, float b) { return a < b ? 1.0f : 0.0f; },
        [](Extent a, Extent b) { return boolean(compare(a, b) < 0); },
        true}},
      {"Greater",
       {[](float a, float b) { return a > b ? 1.0f : 0.0f; },
        [](Extent a, Extent b) { return boolean(compare(a, b) > 0); },
        true}},
      {"GreaterOrEqual",
       {[](float a, float b) { return a >= b ? 1.0f : 0.0f; },
        [](Extent a, Extent b) { return boolean(compare(a, b) >= 0); },
        true}},
      {"LessOrEqual",
       {[](float a, float b) { return a <= b ? 1.0f : 0.0f; },
        [](Extent a, Extent b) { return boolean(compare(a, b) <= 0); },
        true}},
      {"And",
       {[](float a, float b) { return a != 0.0f && b != 0.0f ? 1.0f : 0.0f; },
        [](Extent a, Extent b) { return boolean(a.n != 0 && b.n != 0); },
        true}},
      {"Or",
       {[](float a, float b) { return a != 0.0f || b != 0.0f ? 1.0f : 0.0f; },
        [](Extent a, Extent b) { return boolean(a.n != 0 || b.n != 0); },
        true}},
  };
  return all;
}

/// y[i] = f(a[i], b[i]), broadcast.
template <class Values, class F>
Constant apply(const Constant& a, const Constant& b, const F& f, FoldBudget& budget) {
  const std::vector<int64_t> dims = broadcast(a.dims, b.dims);
  const int64_t n = product(dims);
  budget.take(n);
  const BroadcastIndex in_a(a.dims, dims), in_b(b.dims, dims);
  const Values& from_a = std::get<Values>(a.values);
  const Values& from_b = std::get<Values>(b.values);
  Values y;
  y.reserve(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    y.push_back(f(from_a[static_cast<size_t>(in_a(i))], from_b[static_cast<size_t>(in_b(i))]));
  }
  return {dims, std::move(y)};
}

Constant where(const std::vector<const Constant*>& inputs, FoldBudget& budget) {
  if (inputs.size() != 3) throw Refusal{"has not three inputs"};
  const Constant& a = *inputs[1];
  const Constant& b = *inputs[2];
  if (a.is_float() != b.is_float()) throw Refusal{"its inputs differ in type"};
  const std::vector<int64_t> dims = broadcast(inputs[0]->dims, broadcast(a.dims, b.dims));
  const int64_t n = product(dims);
  budget.take(n);
  const BroadcastIndex in_condition(inputs[0]->dims, dims), in_a(a.dims, dims), in_b(b.dims, dims);
  const std::vector<int64_t> condition = inputs[0]->integers();
  Constant y{dims, {}};
  std::visit(
      [&](const auto& from_a) {
        using Values = std::decay_t<decltype(from_a)>;
        const Values& from_b = std::get<Values>(b.values);
        Values values;
        for (int64_t i = 0; i < n; ++i) {
          const bool takes_a = condition[static_cast<size_t>(in_condition(i))] != 0;
          values.push_back(takes_a ? from_a[static_cast<size_t>(in_a(i))]
                                   : from_b[static_cast<size_t>(in_b(i))]);
        }
        y.values = std::move(values);
      },
      a.values);
  return y;
}

Constant unary(const Unary& function, const Constant& x, FoldBudget& budget) {
  budget.take(x.elements());
  Constant y = x;
  if (x.is_float()) {
    for (float& v : std::get<std::vector<float>>(y.values)) v = function.of_float(v);
  } else {
    for (Extent& v : std::get<std::vector<Extent>>(y.values)) v = function.of_extent(v);
  }
  return y;
}

}  // namespace

std::vector<int64_t> broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  const size_t rank = std::max(a.size(), b.size());
  if (rank > Shape::kMaxRank) throw Refusal{"more than 8 axes"};
  std::vector<int64_t> dims(rank, 1);
  for (size_t i = 0; i < rank; ++i) {  // from the last axis on
    const int64_t of_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t of_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) throw Refusal{"its shapes do not broadcast"};
    dims[rank - 1 - i] = of_a == 1 ? of_b : of_a;
    if (dims[rank - 1 - i] < 0) throw Refusal{"a shape has a negative extent"};
  }
  return dims;
}

BroadcastIndex::BroadcastIndex(const std::vector<int64_t>& from, const std::vector<int64_t>& to)
    : to_(to), stride_(to.size(), 0) {
  int64_t stride = 1;
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t extent = from[from.size() - 1 - i];
    stride_[to.size() - 1 - i] = extent == 1 ? 0 : stride;
    stride *= extent;
  }
}

int64_t BroadcastIndex::operator()(int64_t i) const {
  int64_t index = 0;
  for (size_t k = to_.size(); k-- > 0;) {
    index += i % to_[k] * stride_[k];
    i /= to_[k];
  }
  return index;
}

const std::vector<std::string>& arithmetic_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all{"Where"};
    for (const auto& [name, function] : unaries()) all.push_back(name);
    for (const auto& [name, function] : binaries()) all.push_back(name);
    return all;
  }();
  return names;
}

Constant fold_arithmetic(const std::string& op_type,
                         const std::vector<const Constant*>& inputs,
                         FoldBudget& budget) {
  const DefaultRounding rounding;
  if (op_type == "Where") return where(inputs, budget);
  if (inputs.empty()) throw Refusal{"has no input"};
  const auto of_one = unaries().find(op_type);
  if (of_one != unaries().end()) return unary(of_one->second, *inputs[0], budget);
  const Binary& function = binaries().at(op_type);
  Constant y = *inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) {
    const Constant& b = *inputs[i];
    if (y.is_float() != b.is_float()) {
      // Only Pow takes an exponent of another type.
      if (op_type != "Pow" || !y.is_float()) throw Refusal{"its inputs differ in type"};
      const Constant exponent{b.dims, b.floats()};
      y = apply<std::vector<float>>(y, exponent, function.of_floats, budget);
    } else if (y.is_float()) {
      y = apply<std::vector<float>>(y, b, function.of_floats, budget);
    } else {
      y = apply<std::vector<Extent>>(y, b, function.of_extents, budget);
    }
  }
  if (function.gives_bools && y.is_float()) {
    std::vector<Extent> bools;
    for (const float v : y.floats()) bools.push_back({v != 0.0f ? 1 : 0});
    y.values = std::move(bools);
  }
  return y;
}

}  // namespace quantrain::onnx
