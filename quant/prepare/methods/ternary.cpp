#include "quant/prepare/methods/ternary.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "framework/autograd/node.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/float/grain.hpp"

namespace quantrain::quant {
namespace {

class TernaryNode : public Node {
 public:
  std::string_view type() const override { return "ternary"; }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override { return {std::move(grad_y)}; }
};

void ternarize(std::span<const float> w, double threshold, float* t) {
  double sum = 0.0;
  for (const float v : w) sum += std::abs(static_cast<double>(v));
  if (!std::isfinite(sum)) {  // whoever quantizes t reports it
    std::fill_n(t, w.size(), static_cast<float>(sum));
    return;
  }
  const double least = threshold * (sum / static_cast<double>(w.size()));
  const auto is_kept = [least](float v) { return std::abs(static_cast<double>(v)) > least; };
  double kept = 0.0;
  int64_t count = 0;
  for (const float v : w) {
    if (!is_kept(v)) continue;
    kept += std::abs(static_cast<double>(v));
    ++count;
  }
  const float scale = count == 0 ? 0.0f : static_cast<float>(kept / static_cast<double>(count));
  for (size_t i = 0; i < w.size(); ++i) t[i] = is_kept(w[i]) ? std::copysign(scale, w[i]) : 0.0f;
}

}  // namespace

std::string Ternary::fault(const QType& type, bool per_channel) const {
  if (!(threshold >= 0.0f && threshold < 1.0f))
    return "threshold is " + std::to_string(threshold) + ", expected at least 0 and less than 1";
  if (type.bits != 2 || !type.narrow)
    return "ternary weights are the codes -1, 0 and 1: set bits = 2 and narrow = true";
  if (!per_channel) return "ternary weights have a scale for each output: set per_channel = true";
  return "";
}

Tensor Ternary::operator()(const Tensor& w, bool /*per_channel*/) const {
  const int64_t rows = w.dim(0);
  const int64_t columns = w.elements() / std::max<int64_t>(rows, 1);
  Tensor t = Tensor::empty(w.shape());
  float* const to = t.mutable_data();
  const Floats floats = w.floats();
  const float* const from = floats.data();
  parallel_for(
      rows, kernels::row_grain(columns, kernels::kRereadGrain), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          ternarize({from + r * columns, static_cast<size_t>(columns)},
                    double{threshold},
                    to + r * columns);
        }
      });
  return record<TernaryNode>(std::move(t), {w});
}

}  // namespace quantrain::quant
