#include "quant/analysis/overflow.hpp"

#include <algorithm>
#include <cstdlib>

namespace quantrain::quant {

int64_t accumulator_bound(int64_t length, const int8_t* weights, int32_t bias, int32_t zero_x) {
  int64_t positive = 0;
  int64_t negative = 0;
  for (int64_t i = 0; i < length; ++i) {
    (weights[i] > 0 ? positive : negative) += std::abs(weights[i]);
  }
  const int64_t start = std::abs(bias - int64_t{zero_x} * (positive - negative));
  return start + 255 * std::max(positive, negative);
}

}  // namespace quantrain::quant
