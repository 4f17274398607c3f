#include "layers/dropout.hpp"

#include "framework/autograd/ops/dropout.hpp"
#include "framework/core/error.hpp"

namespace quantrain {
Dropout::Dropout(float p, Generator& generator) : p_(p), seed_(generator.next_stream().bits()) {
  if (!(p >= 0.0f && p < 1.0f)) throw DataError("Dropout", "p must be in [0, 1): ", p);
  passes_ = add_buffer("passes", IntegerBuffer({}, {.least = 0, .most = kMostCount}));
}

uint64_t Dropout::next_pass() {
  const int64_t pass = passes_.item();
  passes_.fill(pass + 1);
  return static_cast<uint64_t>(pass);
}

Tensor Dropout::forward(const Tensor& x) {
  if (!training()) return x;
  return dropout(x, {.p = p_, .seed = seed_, .counter = next_pass()});
}

}  // namespace quantrain
