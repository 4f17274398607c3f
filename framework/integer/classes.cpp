#include "framework/integer/classes.hpp"

#include <algorithm>
#include <cmath>

#include "framework/core/rounding.hpp"

namespace quantrain::integer {

std::vector<int32_t> class_factors(const Value& output) {
  if (output.scale.size() <= 1) return {1};
  const DefaultRounding rounding;
  const double largest = *std::max_element(output.scale.begin(), output.scale.end());
  std::vector<int32_t> factors(output.scale.size());
  for (size_t c = 0; c < factors.size(); ++c)
    factors[c] =
        static_cast<int32_t>(std::max(1LL, std::llround(0x1p30 * (output.scale[c] / largest))));
  return factors;
}

int64_t class_count(const Value& output) {
  return output.shape.rank() == 0 ? 1 : output.shape.back();
}

void classify(const Value& output, std::span<const int32_t> scores, int32_t* classes) {
  const std::vector<int32_t> factors = class_factors(output);
  const int64_t count = class_count(output);
  for (int64_t at = 0; at < std::ssize(scores); at += count)
    *classes++ = class_of(scores.data() + at, count, factors, at);
}

}  // namespace quantrain::integer
