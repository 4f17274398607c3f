#include "quant/prepare/methods/fewer_bits.hpp"

#include <algorithm>
#include <cmath>

#include "framework/core/error.hpp"

namespace quantrain::quant {

FewerBits::FewerBits(int first, int last)
    : first_(first), last_(last), now_({1}, {.value = first, .least = last, .most = first}) {}

int FewerBits::lowered(int64_t by, bool frozen, std::string_view where) const {
  const int64_t wanted = std::max<int64_t>(last_, first_ - std::clamp<int64_t>(by, 0, first_));
  const auto fewer = static_cast<int>(std::min<int64_t>(wanted, bits()));
  if (frozen && fewer < bits()) {
    throw QuantError(
        where, "is frozen with ", bits(), " bits: lower its bits before freeze(), or leave them");
  }
  return fewer;
}

std::string FewerBits::fault(int first, int last) {
  if (first == 0 || (first > last && first <= kMostBits)) return "";
  return "first_bits is " + std::to_string(first) + ", expected 0 or more than bits, " +
         std::to_string(last) + ", and at most " + std::to_string(kMostBits);
}

double learned_scale_factor(const QType& from, const QType& to) {
  const double root = std::sqrt(static_cast<double>(from.qmax()) / to.qmax());
  return to.is_sign() && !from.is_sign() ? 0.5 * root : root;
}

}  // namespace quantrain::quant
