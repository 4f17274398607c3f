#include "framework/core/random.hpp"

#include <bit>
#include <cmath>

#include "framework/core/error.hpp"

namespace quantrain {
namespace {

// ln(x) for x > 0 that is finite and not subnormal, from basic operations only. Splits
// x = m * 2^e with m in (sqrt(1/2), sqrt(2)]. ln m = 2 artanh((m - 1) / (m + 1)) is summed as a
// series of 12 terms, which is enough for double.
double natural_log(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double t = (m - 1.0) / (m + 1.0);
  double sum = 0.0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * (t * t) + 1.0 / k;
  return 2.0 * t * sum + exponent * 0.6931471805599453;
}

}  // namespace

float Random::uniform(float low, float high) { return low + (high - low) * uniform(); }

int64_t Random::below(int64_t n) {
  if (n < 1) throw DataError("random", "below(", n, "), expected at least 1");
  const auto bound = static_cast<uint64_t>(n);
  const uint64_t rejected = (0 - bound) % bound;  // 2^64 mod bound
  uint64_t draw = bits();
  while (draw < rejected) draw = bits();
  return static_cast<int64_t>(draw % bound);
}

float Random::normal() {
  for (;;) {
    const double u = 2.0 * static_cast<double>(bits() >> 11) * 0x1p-53 - 1.0;
    const double v = 2.0 * static_cast<double>(bits() >> 11) * 0x1p-53 - 1.0;
    const double s = u * u + v * v;
    if (s > 0.0 && s < 1.0) return static_cast<float>(u * std::sqrt(-2.0 * natural_log(s) / s));
  }
}

}  // namespace quantrain
