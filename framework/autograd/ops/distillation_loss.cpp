#include "framework/autograd/ops/distillation_loss.hpp"

#include <cmath>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/cross_entropy.hpp"
#include "framework/autograd/ops/div.hpp"
#include "framework/autograd/ops/mul.hpp"
#include "framework/autograd/ops/softmax.hpp"
#include "framework/autograd/ops/sub.hpp"
#include "framework/core/error.hpp"

namespace quantrain {

Tensor distillation_loss(const Tensor& student, const Tensor& teacher, float temperature) {
  constexpr const char* kWhere = "distillation_loss";
  if (!(temperature > 0.0f && std::isfinite(temperature))) {
    throw DataError(
        kWhere, "the temperature is ", temperature, ", expected a positive, finite number");
  }
  if (!(student.shape() == teacher.shape())) {
    throw ShapeError(
        kWhere, "shapes differ: student ", student.shape(), ", teacher ", teacher.shape());
  }
  if (student.rank() < 2 || student.elements() == 0)
    throw ShapeError(kWhere, "logits must be [..., C] with elements, got ", student.shape());
  const Tensor t = Tensor::full({}, temperature);
  Tensor targets;
  Tensor entropy;
  {
    const NoGrad no_grad;
    const Tensor softened = div(teacher.detach(), t);
    targets = softmax(softened);
    entropy = cross_entropy(softened, targets);
  }
  const Tensor loss = sub(cross_entropy(div(student, t), targets), entropy);
  return mul(loss, Tensor::full({}, temperature * temperature));
}

}  // namespace quantrain
