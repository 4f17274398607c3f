#include "framework/autograd/ops/add.hpp"

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/broadcast.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/autograd/ops/sum_of_codes.hpp"
#include "framework/kernels/elementwise.hpp"

namespace quantrain {
namespace {

class Add : public Node {
 public:
  std::string_view type() const override { return "add"; }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    return {needs_grad(0) ? reduce_to(grad_y, input(0).shape()) : Tensor(),
            needs_grad(1) ? reduce_to(grad_y, input(1).shape()) : Tensor()};
  }
};

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  std::shared_ptr<const Codes> codes_a = activation_codes(a);
  std::shared_ptr<const Codes> codes_b = activation_codes(b);
  if (codes_a != nullptr && codes_b != nullptr && a.shape() == b.shape()) {
    auto sum = std::make_shared<SumOfCodes>(std::move(codes_a), std::move(codes_b));
    return record<Add>(Tensor::from_accumulators(a.shape(), std::move(sum)), {a, b});
  }
  return record<Add>(broadcast_binary("add", kernels::add_f32, a, b), {a, b});
}

}  // namespace quantrain
