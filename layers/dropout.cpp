#include "layers/dropout.hpp"

#include "framework/autograd/ops/dropout.hpp"
#include "framework/core/error.hpp"
#include "layers/init.hpp"

namespace quantrain {

Dropout::Dropout(float p) : p_(p), seed_(init::next_stream().bits()) {
  if (!(p >= 0.0f && p < 1.0f)) throw DataError("Dropout", "p must be in [0, 1): ", p);
}

Tensor Dropout::forward(const Tensor& x) {
  if (!training()) return x;
  return dropout(x, {.p = p_, .seed = seed_, .counter = passes_++});
}

}  // namespace quantrain
