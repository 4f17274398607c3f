#include "framework/io/metadata.hpp"

#include <algorithm>
#include <optional>

#include "framework/io/json.hpp"
#include "framework/io/json_writer.hpp"

namespace quantrain {
namespace {

std::optional<std::vector<std::string>> json_list(const std::string& text) {
  try {
    const JsonDocument document(text);
    if (!document.root().is_list()) return std::nullopt;
    std::vector<std::string> names;
    for (const JsonValue& entry : document.root().entries()) {
      const std::optional<std::string_view> name = entry.text();
      if (!name) return std::nullopt;
      names.emplace_back(*name);
    }
    return names;
  } catch (const JsonDocument::Malformed&) {
    return std::nullopt;
  }
}

}  // namespace

std::string metadata_text(std::span<const std::string> names) {
  JsonWriter json;
  json.list([&] {
    for (const std::string& name : names) json.write(std::string_view(name));
  });
  return std::move(json).text();
}

std::vector<std::string> metadata_names(const std::map<std::string, std::string>& metadata,
                                        std::string_view name) {
  const auto found = metadata.find(std::string(name));
  if (found == metadata.end() || found->second.empty()) return {};
  std::string_view text = found->second;
  if (text[0] == '[') {
    if (std::optional<std::vector<std::string>> names = json_list(found->second)) return *names;
  }
  std::vector<std::string> names;
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    std::string_view one = text.substr(0, comma);
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    names.emplace_back(one);
    if (more) text.remove_prefix(comma + 1);
  }
  return names;
}

}  // namespace quantrain
