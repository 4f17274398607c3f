#include "quant/prepare/methods/dorefa.hpp"

#include <cmath>
#include <vector>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/functions.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/float/grain.hpp"

namespace quantrain::quant {
namespace {

/// Row by row: t = u / max|u|.
class NormalizedNode : public Node {
 public:
  /// t: the result. at: in each row, the first element with the largest magnitude, or -1 if the row
  /// is 0. most: their magnitudes.
  NormalizedNode(Tensor t, std::vector<int64_t> at, std::vector<float> most)
      : t_(std::move(t)), at_(std::move(at)), most_(std::move(most)) {}
  std::string_view type() const override { return "normalized"; }
  bool reads_input(size_t) const override { return false; }

  std::vector<Tensor> backward(Tensor grad_y) override {
    const auto rows = std::ssize(at_);
    const int64_t columns = t_.elements() / rows;
    Tensor grad = TensorAccess::overwritable(grad_y);
    const Floats g = grad_y.floats();
    const float* const t = t_.data();
    float* const to = grad.mutable_data();
    parallel_for(
        rows, kernels::row_grain(columns, kernels::kRereadGrain), [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            double sum = 0.0;
            for (int64_t i = r * columns; i < (r + 1) * columns; ++i)
              sum += static_cast<double>(g[i]) * static_cast<double>(t[i]);
            const float most = most_[static_cast<size_t>(r)];
            for (int64_t i = r * columns; i < (r + 1) * columns; ++i) to[i] = g[i] / most;
            const int64_t at = at_[static_cast<size_t>(r)];
            if (at >= 0) to[at] -= t[at] * (static_cast<float>(sum) / most);
          }
        });
    return {std::move(grad)};
  }

 private:
  Tensor t_;
  std::vector<int64_t> at_;
  std::vector<float> most_;
};

Tensor normalized(const Tensor& u, int64_t rows) {
  const int64_t columns = u.elements() / rows;
  Tensor t = Tensor::empty(u.shape());
  std::vector<int64_t> at(static_cast<size_t>(rows), -1);
  std::vector<float> most(static_cast<size_t>(rows), 1.0f);
  const float* const from = u.data();
  float* const to = t.mutable_data();
  parallel_for(
      rows, kernels::row_grain(columns, kernels::kRereadGrain), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          float largest = 0.0f;
          for (int64_t i = r * columns; i < (r + 1) * columns; ++i) {
            if (!(std::abs(from[i]) > largest)) continue;
            largest = std::abs(from[i]);
            at[static_cast<size_t>(r)] = i;
          }
          if (largest > 0.0f) most[static_cast<size_t>(r)] = largest;
          const float m = most[static_cast<size_t>(r)];
          for (int64_t i = r * columns; i < (r + 1) * columns; ++i) to[i] = from[i] / m;
        }
      });
  Tensor kept = t.detach();
  return record<NormalizedNode>(std::move(t), {u}, std::move(kept), std::move(at), std::move(most));
}

}  // namespace

Tensor DoReFa::operator()(const Tensor& w, bool per_channel) const {
  return normalized(quantrain::tanh(w), per_channel ? w.dim(0) : 1);
}

}  // namespace quantrain::quant
