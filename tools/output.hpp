#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// What verbs print and write.
namespace quantrain::tools {

/// A number with the digits that people want to see; JSON gets all of them.
struct Rounded {
  double value = 0.0;
  int digits = 2;
  const char* unit = "";  ///< after the number, for people
};

/// Nothing, a text, a number, yes or no, or a shape.
using Cell =
    std::variant<std::monostate, std::string, int64_t, Rounded, bool, std::vector<int64_t>>;

/// A fraction as "91.06 %"; JSON gets the fraction.
Cell percent(double fraction);
/// Signal to noise, sums of squares, in decibels; a signal without noise prints "exact", noise
/// without a signal "no signal". Both, and NaN, are null in JSON.
Cell decibels(double signal, double noise);

/// The result of a verb, as text for people or as one JSON object. Both have the same content.
class Report {
 public:
  /// name: the JSON member; for people, "_" becomes a space.
  void fact(const std::string& name, Cell value);
  void list(const std::string& name, std::vector<std::string> values);
  /// columns: names; of numbers, with a leading '>'. text: what people see instead.
  void table(const std::string& name,
             std::vector<std::string> columns,
             std::vector<std::vector<Cell>> rows,
             std::optional<std::string> text = {});
  /// The same for tables that may be long. Of many rows, people see those of the largest weight, in
  /// their order, and "and 980 more rows" with `others`, which says what these are. JSON has all.
  void long_table(const std::string& name,
                  std::vector<std::string> columns,
                  std::vector<std::vector<Cell>> rows,
                  std::vector<double> weights,
                  const char* others);
  /// What only people see.
  void note(std::string text);
  /// A line on standard error when the report is printed, and the JSON member "warnings".
  void warning(std::string text);
  /// Prints the warnings so far at once, for work that takes long.
  void print_warnings();

  /// all: of long tables and lists, too.
  std::string text(bool all = false) const;
  std::string json() const;
  /// Another JSON object with the members of this one before its own.
  std::string json_before(std::string object) const;

 private:
  struct Table {
    std::vector<std::string> columns;
    std::vector<std::vector<Cell>> rows;
    std::optional<std::string> text{};
    std::vector<double> weights{};
    const char* others = "";
  };
  struct Entry {
    std::string name;  ///< empty: a note
    std::variant<Cell, std::vector<std::string>, Table> value;
  };
  std::vector<Entry> entries_;
  std::vector<std::string> warnings_;
  size_t warnings_printed_ = 0;
};

/// Writes to standard output, in the program's words (words.hpp).   Throws: DataError if it cannot
/// be written.
void print(std::string_view text);
/// The report as text or JSON, after its warnings. all: see Report::text().
void print(Report& report, bool json, bool all = false);

/// Calls `write`, which writes the files of a verb. SIGINT, SIGTERM and SIGHUP take effect only
/// afterwards, so that they do not leave some of the files.
void write_files(const std::function<void()>& write);
/// From now on, these signals end the program after the line "quantrain: interrupted" and `hint`.
void handle_signals();
void set_interrupt_hint(const char* hint);

/// Refuses to write over a file that is read, or to write two outputs to one file; then checks each
/// output, before work starts.
/// Throws: WrongCall naming both; DataError as check_writable(). Empty paths do not count.
void check_outputs(const std::vector<std::pair<std::string, std::string>>& outputs,
                   const std::vector<std::string>& inputs);

/// Checks that files can be written to a folder, which need not exist yet.
/// Throws: DataError as check_writable().
void check_folder(const std::string& path);

}  // namespace quantrain::tools
