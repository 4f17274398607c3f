#include "framework/core/printable.hpp"

#include <cstdint>

namespace quantrain {

void make_printable(std::string& text, size_t most) {
  constexpr size_t kDots = 3;
  size_t size = 0;
  size_t line = 0;  // bytes of the line so far
  uint8_t before = 0;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    // In UTF-8, C2 80 to C2 9F are control characters, too.
    const bool controls = byte < 0x20 || byte == 0x7f || (before == 0xc2 && byte < 0xa0);
    before = byte;
    char shown = controls ? '?' : c;
    if (c == '\n') {
      shown = c;
      line = 0;
    } else if (++line > most) {
      if (line > most + kDots) continue;
      shown = '.';
    }
    text[size++] = shown;
  }
  while (text.size() > size) text.pop_back();
}

}  // namespace quantrain
