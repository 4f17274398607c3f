#include "framework/core/error.hpp"

#include "framework/core/printable.hpp"
#include "framework/core/text_stream.hpp"

namespace quantrain::detail {

std::string text(std::string_view where, std::span<const Part> parts) {
  TextStream stream;
  stream << '[' << (where.empty() ? "unnamed" : where) << "] ";
  for (const Part& part : parts) part.print(stream, part.value);
  std::string text = stream.str();
  make_printable(text);
  return text;
}

}  // namespace quantrain::detail
