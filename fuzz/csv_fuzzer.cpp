// Reads a .csv file, with and without a header. Then reads its columns as numbers, labels and
// classes.
#include <algorithm>
#include <cmath>

#include "framework/core/error.hpp"
#include "framework/data/csv.hpp"
#include "fuzz/harness.hpp"

namespace quantrain::fuzz {
namespace {

template <class F>
void refusable(const F& f) {
  try {
    f();
  } catch (const Error&) {
  }
}

void take(const CsvTable& table) {
  const auto rows = static_cast<size_t>(table.rows());
  // Looking up a column by name is slow in a wide table, so only a few columns are read.
  constexpr size_t kMost = 8;
  const std::vector<std::string> columns = table.columns();
  for (size_t c = 0; c < std::min(kMost, columns.size()); ++c) {
    refusable([&] {
      const std::vector<float> values = table.floats(columns[c]);
      if (values.size() != rows) finding("a column does not have one number for each row");
      for (const float value : values) {
        if (!std::isfinite(value)) finding("a number is NaN or infinite");
      }
    });
    refusable([&] { static_cast<void>(table.labels(columns[c])); });
    refusable([&] {
      const TextClasses classes = table.classes(columns[c]);
      for (size_t r = 0; r < rows; ++r) {
        const std::string& name = classes.names.at(static_cast<size_t>(classes.labels.at(r)));
        if (table.text(static_cast<int64_t>(r), columns[c]).find(name) == std::string_view::npos)
          finding("a class is not the text of its cell");
      }
    });
  }
}

}  // namespace

bool accepts(std::span<const uint8_t> input) {
  const MemoryFile file(input);
  refusable([&] { take(read_csv(file.path(), {.separator = ';', .header = false})); });
  take(read_csv(file.path()));
  return true;
}

}  // namespace quantrain::fuzz
