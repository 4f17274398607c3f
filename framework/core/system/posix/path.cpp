#include "framework/core/path.hpp"

namespace quantrain {

std::filesystem::path to_path(const std::string& text) { return text; }

std::string to_text(const std::filesystem::path& path) { return path.string(); }

}  // namespace quantrain
