#include "framework/autograd/ops/dropout.hpp"

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/random.hpp"

namespace quantrain {
namespace {

constexpr int64_t kBlock = 4096;  // elements that draw from one stream of random numbers

// Forward and backward alike: the mask is drawn anew rather than saved.
Tensor drop(const Tensor& x, const DropoutOptions& options) {
  Tensor y = Tensor::empty(x.shape());
  const Floats from = x.floats();
  float* const to = y.mutable_data();
  const float scale = options.p < 1.0f ? 1.0f / (1.0f - options.p) : 0.0f;
  parallel_for(x.elements(), kBlock, [&](int64_t begin, int64_t end) {
    Random random(options.seed, options.counter, static_cast<uint64_t>(begin / kBlock));
    for (int64_t i = begin; i < end; ++i)
      to[i] = random.uniform() >= options.p ? from.data()[i] * scale : 0.0f;
  });
  return y;
}

class DropoutNode : public Node {
 public:
  explicit DropoutNode(const DropoutOptions& options) : options_(options) {}
  std::string_view type() const override { return "dropout"; }
  Attributes attributes() const override { return {{"p", double{options_.p}}}; }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override { return {drop(grad_y, options_)}; }

 private:
  DropoutOptions options_;
};

}  // namespace

Tensor dropout(const Tensor& x, const DropoutOptions& options) {
  if (!(options.p >= 0.0f && options.p <= 1.0f)) {
    throw DataError("dropout", "p must lie in [0, 1], got ", options.p);
  }
  if (!options.training || options.p == 0.0f) return x;
  return record<DropoutNode>(drop(x, options), {x}, options);
}

}  // namespace quantrain
