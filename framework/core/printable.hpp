#pragma once

#include <cstddef>
#include <string>

namespace quantrain {

/// Makes a text from anywhere, such as a file, fit for a terminal: control characters, which
/// terminals obey, become "?", except line breaks; what follows the first `most` bytes of a line
/// becomes up to three dots. All messages of errors and all cells of tables pass this function.
void make_printable(std::string& text, size_t most = 2000);
inline std::string printable(std::string text, size_t most = 2000) {
  make_printable(text, most);
  return text;
}

}  // namespace quantrain
