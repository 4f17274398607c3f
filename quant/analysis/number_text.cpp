#include "quant/analysis/number_text.hpp"

#include <charconv>

namespace quantrain::quant {

std::string number_text(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 3);
  return {text, end.ptr};
}

std::string percent_text(double share) { return number_text(100.0 * share) + " %"; }

}  // namespace quantrain::quant
