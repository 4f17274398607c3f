#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "framework/core/error.hpp"

// Numbers and lists of names in the metadata of files, which are texts: of models
// (IntegerModel::save) and of states of networks (save).
//   model.save(path, {{"threshold", metadata_text(0.73f)}});
//   const auto threshold = metadata_number<float>(IntegerModel::load(path), "threshold");
//   const std::vector<std::string> classes = metadata_names(IntegerModel::load(path), "classes");
namespace quantrain {

template <class T>
concept MetadataNumber = (std::integral<T> && !std::same_as<T, bool>) || std::same_as<T, float> ||
                         std::same_as<T, double>;

/// The number as text, from which metadata_number() of the same type reads the same bits. It does
/// not depend on the locale.
/// Throws: DataError if the number is NaN or infinite.
template <MetadataNumber Number>
std::string metadata_text(Number value) {
  if constexpr (std::floating_point<Number>) {
    if (!std::isfinite(value)) throw DataError("metadata", "a number is ", value);
  }
  char text[64];
  const std::to_chars_result result = std::to_chars(text, text + sizeof text, value);
  return {text, result.ptr};
}

/// The number that the metadata hold under this name.
/// Throws: DataError if there is no such name (the message lists the others), or its text is not a
/// finite number of this type.
template <MetadataNumber Number = double>
Number metadata_number(const std::map<std::string, std::string>& metadata, std::string_view name) {
  const auto found = metadata.find(std::string(name));
  if (found == metadata.end()) {
    std::string known;
    for (const auto& [other, text] : metadata) known += (known.empty() ? "" : ", ") + other;
    throw DataError("metadata",
                    "there is no \"",
                    name,
                    known.empty() ? "\"; there are no metadata" : "\"; there are: ",
                    known);
  }
  const std::string& text = found->second;
  Number value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool fits = problem == std::errc() && end == text.data() + text.size();
  if constexpr (std::floating_point<Number>) fits = fits && std::isfinite(value);
  if (!fits)
    throw DataError("metadata",
                    '"',
                    name,
                    "\" is \"",
                    text,
                    "\", expected ",
                    std::integral<Number> ? "a whole number" : "a number",
                    " in the range of its type");
  return value;
}

/// The names as a JSON list: ["cat", "dog"].
std::string metadata_text(std::span<const std::string> names);

/// The names that the metadata hold under `name`: a JSON list, or names between commas, as
/// convert() wrote them before 0.2. None if there is no such name.
std::vector<std::string> metadata_names(const std::map<std::string, std::string>& metadata,
                                        std::string_view name);

/// The same for what has metadata, such as an IntegerModel.
template <class Model>
requires requires(const Model& model) {
  { model.metadata() } -> std::convertible_to<std::map<std::string, std::string>>;
}
std::vector<std::string> metadata_names(const Model& model, std::string_view name) {
  return metadata_names(model.metadata(), name);
}

/// The same for what has metadata, such as an IntegerModel.
template <MetadataNumber Number = double, class Model>
requires requires(const Model& model) {
  { model.metadata() } -> std::convertible_to<std::map<std::string, std::string>>;
}
Number metadata_number(const Model& model, std::string_view name) {
  return metadata_number<Number>(model.metadata(), name);
}

}  // namespace quantrain
