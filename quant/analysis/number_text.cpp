#include "quant/analysis/number_text.hpp"

#include "framework/io/html.hpp"

namespace quantrain::quant {
namespace {
constexpr double kSmallestShare = 1e-4;
}  // namespace

std::string number_text(double value) { return html::number(value, 3); }
std::string percent_text(double share) {
  return share > 0.0 && share < kSmallestShare ? "<0.01 %" : number_text(100.0 * share) + " %";
}

}  // namespace quantrain::quant
