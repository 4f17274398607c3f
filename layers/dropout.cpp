#include "layers/dropout.hpp"

#include <cmath>

#include "framework/autograd/ops/dropout.hpp"
#include "framework/core/error.hpp"

namespace quantrain {
namespace {

constexpr float kDigit = 0x1p24f;  // the buffer "passes" holds two digits in this base; see passes_

bool is_digit(float x) { return x >= 0.0f && x < kDigit && x == std::floor(x); }

}  // namespace

Dropout::Dropout(float p, Generator& generator) : p_(p), seed_(generator.next_stream().bits()) {
  if (!(p >= 0.0f && p < 1.0f)) throw DataError("Dropout", "p must be in [0, 1): ", p);
  passes_ = add_buffer("passes", Tensor::zeros({2}));
}

uint64_t Dropout::next_pass() {
  float* const digits = passes_.mutable_data();
  if (!is_digit(digits[0]) || !is_digit(digits[1]))
    throw DataError(where(),
                    "state \"passes\" holds {",
                    digits[0],
                    ", ",
                    digits[1],
                    "}, expected two whole numbers in [0, 2^24)");
  const uint64_t pass = static_cast<uint64_t>(digits[0]) + (static_cast<uint64_t>(digits[1]) << 24);
  if (++digits[0] == kDigit) {
    digits[0] = 0.0f;
    ++digits[1];
  }
  return pass;
}

Tensor Dropout::forward(const Tensor& x) {
  if (!training()) return x;
  return dropout(x, {.p = p_, .seed = seed_, .counter = next_pass()});
}

}  // namespace quantrain
