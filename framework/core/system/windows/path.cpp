#include "framework/core/path.hpp"

namespace quantrain {

std::filesystem::path to_path(const std::string& text) {
  return std::u8string(text.begin(), text.end());
}

std::string to_text(const std::filesystem::path& path) {
  const std::u8string text = path.u8string();
  return {text.begin(), text.end()};
}

}  // namespace quantrain
