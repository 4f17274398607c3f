#include "framework/core/error.hpp"

#include <sstream>

namespace quantrain::detail {

std::string text(std::string_view where, std::span<const Part> parts) {
  std::ostringstream stream;
  stream << '[' << where << "] ";
  for (const Part& part : parts) part.print(stream, part.value);
  return stream.str();
}

}  // namespace quantrain::detail
