#include "quant/export/onnx/fixed_point.hpp"

#include <algorithm>
#include <functional>

namespace quantrain::onnx_export {
namespace {

using onnx::ElementType;
using onnx::GraphBuilder;

/// Makes every sum positive, and is a multiple of every 2^shift.   docs/quantization.md (8)
constexpr uint64_t kBias = uint64_t{1} << 62;

bool all_equal(const std::vector<int32_t>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

/// f(shift) of each shift, as a constant.
template <class T, class F>
std::string constant(GraphBuilder& graph, const Shift& s, const char* what, const F& f) {
  std::vector<T> values;
  for (const int32_t shift : s.shift) values.push_back(static_cast<T>(f(shift)));
  return graph.constant<T>(s.dims, values, what);
}

/// x >> shift of int64 x that are not negative.
std::string shifted(GraphBuilder& graph, const std::string& x, const std::string& shift) {
  const std::string bits = cast(graph, x, ElementType::kUint64);
  const std::string y =
      graph.node("BitShift", {bits, shift}, {{"direction", std::string("RIGHT")}});
  return cast(graph, y, ElementType::kInt64);
}

}  // namespace

std::string cast(GraphBuilder& graph, const std::string& x, ElementType type) {
  return graph.node("Cast", {x}, {{"to", static_cast<int64_t>(type)}});
}

std::string rounding_shift(GraphBuilder& graph, const std::string& product, Shift s) {
  if (all_equal(s.shift)) {
    s.shift.resize(1);
    s.dims.clear();
  }
  // ONNX does not define what an int64 that overflows is. Only sums that use the range of int32
  // almost fully can come so far.
  const bool fits = std::all_of(s.shift.begin(), s.shift.end(), [&](int32_t shift) {
    const uint64_t most = kBias + (uint64_t{1} << (shift - 1)) + static_cast<uint64_t>(s.bound);
    return most < uint64_t{1} << 63;
  });
  std::string y;
  if (fits) {
    const std::string half = constant<int64_t>(graph, s, "half", [&](int32_t shift) {
      return static_cast<int64_t>(kBias + (uint64_t{1} << (shift - 1))) + s.offset;
    });
    y = shifted(graph,
                graph.node("Add", {product, half}),
                constant<uint64_t>(graph, s, "shift", [](int32_t shift) { return shift; }));
  } else {  // the same in two shifts: (p + 2^(s-1)) >> s = ((p >> (s-1)) + 1) >> 1
    const std::string bias = graph.scalar(static_cast<int64_t>(kBias) + s.offset, "bias");
    y = shifted(graph,
                graph.node("Add", {product, bias}),
                constant<uint64_t>(graph, s, "shift", [](int32_t shift) { return shift - 1; }));
    y = graph.node("Add", {y, graph.scalar<int64_t>(1)});
    y = shifted(graph, y, graph.scalar<uint64_t>(1));
  }
  const std::string zero = constant<int64_t>(graph, s, "zero", [&](int32_t shift) {
    return s.y.zero_point - static_cast<int64_t>(kBias >> shift);
  });
  y = graph.node("Add", {y, zero});
  y = graph.node("Clip",
                 {y, graph.scalar<int64_t>(s.y.lo, "low"), graph.scalar<int64_t>(s.y.hi, "high")});
  return cast(graph, y, ElementType::kUint8);
}

std::string requantize(GraphBuilder& graph, const std::string& sum, Requantize r) {
  const std::vector<int64_t> dims = all_equal(r.m0) ? std::vector<int64_t>{} : r.dims;
  std::vector<int64_t> m0(r.m0.begin(), r.m0.end());
  if (dims.empty()) m0.resize(1);
  const std::string wide = cast(graph, sum, ElementType::kInt64);
  const std::string product =
      graph.node("Mul", {wide, graph.constant<int64_t>(dims, m0, "multiplier")});
  const int64_t most = *std::max_element(m0.begin(), m0.end());
  return rounding_shift(
      graph, product, {std::move(r.dims), std::move(r.shift), r.bound * most, 0, r.y});
}

}  // namespace quantrain::onnx_export
