#include "quant/analysis/spread.hpp"

#include <algorithm>

#include "framework/core/random.hpp"

namespace quantrain::quant {

std::vector<int64_t> spread(int64_t n, int64_t most) {
  std::vector<int64_t> picked;
  const int64_t parts = std::min(n, most);
  Random random(0);
  // Part i begins at i * n / parts, without the product, which could overflow.
  const auto begin = [&](int64_t i) { return n / parts * i + n % parts * i / parts; };
  for (int64_t i = 0; i < parts; ++i)
    picked.push_back(begin(i) + random.below(begin(i + 1) - begin(i)));
  return picked;
}

}  // namespace quantrain::quant
