#include "tools/output.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/path.hpp"
#include "framework/core/shape.hpp"
#include "framework/core/system/process.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/core/text_table.hpp"
#include "framework/io/json_writer.hpp"
#include "tools/command.hpp"
#include "tools/flags.hpp"
#include "tools/words.hpp"

namespace quantrain::tools {
namespace {

std::string shown(const Cell& cell) {
  if (const auto* const text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* const number = std::get_if<int64_t>(&cell)) return grouped(*number);
  if (const auto* const flag = std::get_if<bool>(&cell)) return *flag ? "yes" : "no";
  if (const auto* const real = std::get_if<Rounded>(&cell)) {
    if (std::string_view(real->unit) == " dB" && !std::isfinite(real->value))
      return std::isnan(real->value) ? "NaN" : real->value > 0.0 ? "exact" : "no signal";
    const double value = std::string_view(real->unit) == " %" ? 100.0 * real->value : real->value;
    return decimals(value, real->digits) + real->unit;
  }
  if (const auto* const shape = std::get_if<std::vector<int64_t>>(&cell)) {
    TextStream text;
    text << Shape(std::span<const int64_t>(*shape));
    return std::move(text).str();
  }
  return "-";
}

void write(JsonWriter& json, const Cell& cell) {
  if (const auto* const text = std::get_if<std::string>(&cell)) return json.write(*text);
  if (const auto* const number = std::get_if<int64_t>(&cell)) return json.write(*number);
  if (const auto* const flag = std::get_if<bool>(&cell)) return json.write(*flag);
  if (const auto* const real = std::get_if<Rounded>(&cell)) return json.write(real->value);
  if (const auto* const shape = std::get_if<std::vector<int64_t>>(&cell)) return json.write(*shape);
  json.write(nullptr);
}

std::string spaced(std::string name) {
  for (char& letter : name) {
    if (letter == '_') letter = ' ';
  }
  return name;
}

std::string column_name(const std::string& column) {
  return column[0] == '>' ? column.substr(1) : column;
}

/// The rows of the largest weight, in their order; none if people see all.
std::vector<size_t> heaviest(const std::vector<double>& weights) {
  constexpr size_t kShown = 20;
  if (weights.size() <= kShown + 1) return {};
  std::vector<size_t> rows(weights.size());
  std::iota(rows.begin(), rows.end(), size_t{0});
  std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) {
    if (std::isnan(weights[a]) || std::isnan(weights[b]))
      return std::isnan(weights[a]) && !std::isnan(weights[b]);
    return weights[a] > weights[b];
  });
  rows.resize(kShown);
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::string some_of(const std::vector<std::string>& names, bool all) {
  constexpr size_t kShown = 20;
  if (all || names.size() <= kShown + 1) return joined(names);
  return joined({names.begin(), names.begin() + kShown}) + " and " +
         std::to_string(names.size() - kShown) + " more: --all prints them";
}

}  // namespace

Cell percent(double fraction) { return Rounded{fraction, 2, " %"}; }
Cell decibels(double signal, double noise) {
  // The logarithm is NaN if a value is NaN.
  const double value = noise == 0.0 ? INFINITY : 10.0 * std::log10(signal / noise);
  return Rounded{value, 1, " dB"};
}

void Report::fact(const std::string& name, Cell value) {
  entries_.push_back({name, std::move(value)});
}
void Report::list(const std::string& name, std::vector<std::string> values) {
  entries_.push_back({name, std::move(values)});
}
void Report::table(const std::string& name,
                   std::vector<std::string> columns,
                   std::vector<std::vector<Cell>> rows,
                   std::optional<std::string> text) {
  entries_.push_back({name, Table{std::move(columns), std::move(rows), std::move(text)}});
}
void Report::long_table(const std::string& name,
                        std::vector<std::string> columns,
                        std::vector<std::vector<Cell>> rows,
                        std::vector<double> weights,
                        const char* others) {
  entries_.push_back(
      {name, Table{std::move(columns), std::move(rows), {}, std::move(weights), others}});
}
void Report::warning(std::string text) { warnings_.push_back(std::move(text)); }
void Report::print_warnings() {
  for (; warnings_printed_ < warnings_.size(); ++warnings_printed_)
    std::fprintf(stderr, "quantrain: %s\n", in_own_words(warnings_[warnings_printed_]).c_str());
}
void Report::note(std::string text) { entries_.push_back({"", Table{{}, {}, std::move(text)}}); }

std::string Report::text(bool all) const {
  TextStream stream;
  for (size_t i = 0; i < entries_.size();) {
    // Facts that follow each other share their columns.
    TextTable facts("ll");
    bool any = false;
    for (; i < entries_.size(); ++i) {
      const Entry& entry = entries_[i];
      if (const auto* const cell = std::get_if<Cell>(&entry.value)) {
        facts.add({spaced(entry.name), shown(*cell)});
      } else if (const auto* const list = std::get_if<std::vector<std::string>>(&entry.value)) {
        facts.add({spaced(entry.name), list->empty() ? "-" : some_of(*list, all)});
      } else {
        break;
      }
      any = true;
    }
    if (any) stream << facts;
    if (i == entries_.size()) break;
    const Entry& entry = entries_[i++];
    const Table& rows = std::get<Table>(entry.value);
    if (rows.text) {
      stream << *rows.text;
      if (!rows.text->empty() && rows.text->back() != '\n') stream << '\n';
      continue;
    }
    std::string kinds;
    std::vector<std::string> head;
    for (const std::string& column : rows.columns) {
      kinds += column[0] == '>' ? 'r' : 'l';
      head.push_back(spaced(column_name(column)));
    }
    TextTable table(kinds);
    table.add(std::move(head));
    const std::vector<size_t> kept = all ? std::vector<size_t>{} : heaviest(rows.weights);
    for (size_t row = 0; row < (kept.empty() ? rows.rows.size() : kept.size()); ++row) {
      std::vector<std::string> cells;
      for (const Cell& cell : rows.rows[kept.empty() ? row : kept[row]])
        cells.push_back(shown(cell));
      table.add(std::move(cells));
    }
    stream << table;
    if (!kept.empty())
      stream << "and " << rows.rows.size() - kept.size() << " more rows" << rows.others
             << ": --all prints them\n";
  }
  return std::move(stream).str();
}

std::string Report::json() const {
  JsonWriter json(nullptr, 2);
  json.object([&] {
    for (const Entry& entry : entries_) {
      if (entry.name.empty()) continue;
      json.member(entry.name, [&] {
        if (const auto* const cell = std::get_if<Cell>(&entry.value)) {
          write(json, *cell);
        } else if (const auto* const list = std::get_if<std::vector<std::string>>(&entry.value)) {
          json.write(*list);
        } else {
          const Table& rows = std::get<Table>(entry.value);
          json.list([&] {
            for (const std::vector<Cell>& row : rows.rows) {
              json.object([&] {
                for (size_t i = 0; i < row.size(); ++i)
                  json.member(column_name(rows.columns[i]), [&] { write(json, row[i]); });
              });
            }
          });
        }
      });
    }
    if (!warnings_.empty()) json.member("warnings", [&] { json.write(warnings_); });
  });
  return std::move(json).text() + '\n';
}

std::string Report::json_before(std::string object) const {
  if (entries_.empty() && warnings_.empty()) return object;
  const std::string own = json();
  return own.substr(0, own.find_last_not_of(" \n", own.rfind('}') - 1) + 1) + ',' +
         object.substr(object.find('{') + 1);
}

void print(std::string_view said) {
  const std::string text = in_own_words(said);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw DataError("standard output", "cannot be written: ", std::strerror(errno));
}

void print(Report& report, bool json, bool all) {
  report.print_warnings();
  print(json ? report.json() : report.text(all));
}

namespace {

std::atomic<bool> writing = false;
std::atomic<int> pending = 0;
std::atomic<const char*> interrupt_hint = "";

// Only calls that a signal handler may make.
void end_by(int number) {
  const char* const texts[] = {"quantrain: interrupted", interrupt_hint.load(), "\n"};
  for (const char* const text : texts) system::write_error(text);
  std::signal(number, SIG_DFL);
  std::raise(number);
}

extern "C" void quantrain_on_signal(int number) {
  if (writing.load()) {
    pending.store(number);
  } else {
    end_by(number);
  }
}

}  // namespace

void handle_signals() { system::on_interrupt(quantrain_on_signal); }

void set_interrupt_hint(const char* hint) { interrupt_hint.store(hint); }

void write_files(const std::function<void()>& write) {
  struct Writing {
    Writing() { writing.store(true); }
    ~Writing() {
      writing.store(false);
      if (pending.load() != 0) end_by(pending.load());
    }
  };
  const Writing scope;
  write();
}

void check_folder(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path existing = fs::absolute(to_path(path));
  while (!exists(to_text(existing)) && existing.has_relative_path())
    existing = existing.parent_path();
  check_writable(to_text(existing / "step"));
}

void check_outputs(const std::vector<std::pair<std::string, std::string>>& outputs,
                   const std::vector<std::string>& inputs) {
  const auto same = [](const std::string& a, const std::string& b) {
    return resolved(a) == resolved(b);
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [name, path] = outputs[i];
    if (path.empty()) continue;
    for (const std::string& input : inputs) {
      if (!input.empty() && same(path, input))
        throw WrongCall(name, "would write over its input ", input);
    }
    for (size_t j = 0; j < i; ++j) {
      if (!outputs[j].second.empty() && same(path, outputs[j].second))
        throw WrongCall(name, "and ", outputs[j].first, " name the same file: ", path);
    }
  }
  for (const auto& [name, path] : outputs) {
    if (!path.empty()) check_writable(path);
  }
}

}  // namespace quantrain::tools
