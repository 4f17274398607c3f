#include "layers/training/what_differs.hpp"

#include <algorithm>
#include <vector>

namespace quantrain {
namespace {

constexpr size_t kShort = 80;
constexpr size_t kMostShown = 200;

/// The parts between single spaces and line breaks. Parts may be empty.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t end = 0; end != std::string_view::npos;) {
    end = text.find_first_of(" \n");
    words.push_back(text.substr(0, end));
    if (end != std::string_view::npos) text.remove_prefix(end + 1);
  }
  return words;
}

bool names_next(std::string_view word) {
  return word.starts_with("--") || word.ends_with(':') || word.ends_with('=');
}

void append(const std::vector<std::string_view>& words, size_t i, bool goes_on, std::string& text) {
  if (!text.empty()) text += goes_on ? " " : " ... ";
  if (!goes_on && i > 0 && names_next(words[i - 1])) text += std::string(words[i - 1]) + ' ';
  text += words[i];
}

std::string cut(std::string text) {
  if (text.size() <= kMostShown) return text;
  text.resize(kMostShown);
  return text + "...";
}

}  // namespace

std::pair<std::string, std::string> what_differs(std::string_view a, std::string_view b) {
  if (std::max(a.size(), b.size()) <= kShort) return {std::string(a), std::string(b)};
  const std::vector<std::string_view> left = words_of(a);
  const std::vector<std::string_view> right = words_of(b);
  std::pair<std::string, std::string> shown;
  if (left.size() == right.size()) {
    bool goes_on = false;
    for (size_t i = 0; i < left.size(); ++i) {
      const bool differs = left[i] != right[i];
      if (differs) {
        append(left, i, goes_on, shown.first);
        append(right, i, goes_on, shown.second);
      }
      goes_on = differs;
    }
  } else {
    // What they begin and end with is alike.
    const size_t least = std::min(left.size(), right.size());
    size_t start = 0;
    while (start < least && left[start] == right[start]) ++start;
    size_t end = 0;
    while (end < least - start && left[left.size() - 1 - end] == right[right.size() - 1 - end])
      ++end;
    for (size_t i = start; i + end < left.size(); ++i) append(left, i, i > start, shown.first);
    for (size_t i = start; i + end < right.size(); ++i) append(right, i, i > start, shown.second);
  }
  return {cut(std::move(shown.first)), cut(std::move(shown.second))};
}

}  // namespace quantrain
