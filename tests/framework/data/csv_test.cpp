#include "framework/data/csv.hpp"

#include <chrono>
#include <clocale>
#include <cmath>
#include <limits>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/data/dataset.hpp"
#include "tests/catch.hpp"
#include "tests/far_folder.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {
namespace {

using test::TemporaryFolder;

CsvTable read_text(const std::string& text, const CsvOptions& options = {}) {
  const TemporaryFolder folder;
  write_file(folder / "x.csv", text);
  return read_csv(folder / "x.csv", options);
}

const std::vector<std::string> kBoth{"b", "a"};

}  // namespace

TEST_CASE("columns of a .csv are selected by name", "[data][csv]") {
  const CsvTable table = read_text("a,b,kind\n1,2.5,cat\n-3e2,+.5,dog\n 4 ,1e-3,cat\n");
  CHECK(table.columns() == std::vector<std::string>{"a", "b", "kind"});
  CHECK(table.rows() == 3);
  CHECK(table.floats(kBoth) == std::vector<float>{2.5f, 1, 0.5f, -300, 1e-3f, 4});
  CHECK(table.floats("a") == std::vector<float>{1, -300, 4});
  CHECK(table.text(1, "kind") == "dog");
  const TextClasses kinds = table.classes("kind");
  CHECK(kinds.names == std::vector<std::string>{"cat", "dog"});
  CHECK(kinds.labels == std::vector<int32_t>{0, 1, 0});
}

TEST_CASE("a .csv and IDX files are read from any path", "[data][csv]") {
  const test::FarFolder folder;
  write_file(folder / (test::kFarName + ".csv"), "a,b\r\n1,2\r\n3,4\r\n");
  const CsvTable table = read_csv(folder / (test::kFarName + ".csv"));
  CHECK(table.floats(kBoth) == std::vector<float>{2, 1, 4, 3});
  write_file(folder / "t10k-images-idx3-ubyte",
             std::string("\0\0\10\3\0\0\0\1\0\0\0\1\0\0\0\1x", 17));
  write_file(folder / "t10k-labels-idx1-ubyte", std::string("\0\0\10\1\0\0\0\1\7", 9));
  const Dataset images = Dataset::mnist(folder.path(), Split::kTest);
  CHECK(images.image(0)[0] == 'x');
  CHECK(images.label(0) == 7);
}

TEST_CASE("a .csv may have quotes, a byte order mark, other line ends and separators",
          "[data][csv]") {
  const CsvTable table = read_text(
      "\xef\xbb\xbf\"a\",\"b, \"\"c\"\"\"\r\n"
      "\"1\",\"x\ny\"\r\n"
      "2,\r\n"
      "\r\n\n");
  CHECK(table.columns() == std::vector<std::string>{"a", "b, \"c\""});
  REQUIRE(table.rows() == 2);
  CHECK(table.text(0, "b, \"c\"") == "x\ny");
  CHECK(table.text(1, "b, \"c\"").empty());
  CHECK(table.floats("a") == std::vector<float>{1, 2});
  const CsvTable semicolons = read_text("a;b\n1,5;2", {.separator = ';'});
  CHECK(semicolons.text(0, "a") == "1,5");
  const CsvTable bare = read_text("1,2\n3,4", {.header = false});
  CHECK(bare.rows() == 2);
  CHECK(bare.floats("1") == std::vector<float>{2, 4});
  // The last line of a file may end with a lone carriage return, with an empty cell or with a
  // closing quote. Elsewhere, a lone carriage return does not end a line.
  CHECK(read_text("a\n1\r").floats("a") == std::vector<float>{1});
  const CsvTable no_more = read_text("a,b\n1,");
  CHECK(no_more.text(0, "b").empty());
  CHECK(read_text("a\n\"1\"").floats("a") == std::vector<float>{1});
  const CsvTable returned = read_text("a\n1\r2\n");
  CHECK(returned.text(0, "a") == "1\r2");
}

TEST_CASE("numbers of a .csv do not depend on the locale", "[data][csv]") {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"}) {
    std::setlocale(LC_ALL, name);
    CHECK(read_text("a\n1.5\n").floats("a") == std::vector<float>{1.5f});
    QUANTRAIN_CHECK_ERROR(read_text("a;b\n1,5;2\n", {.separator = ';'}).floats("a"),
                          DataError,
                          "row 1, column \"a\": \"1,5\" is not a number");
  }
  std::setlocale(LC_ALL, before.c_str());
}

TEST_CASE("the error about a cell that is not a number names its row and column", "[data][csv]") {
  const auto number = [](const std::string& cell) {
    return read_text("a,b\n0,0\n1," + cell + "\n").floats(kBoth)[2];
  };
  QUANTRAIN_CHECK_ERROR(number("nan"), DataError, "row 2, column \"b\": is nan: leave the row out");
  QUANTRAIN_CHECK_ERROR(number("-Infinity"), DataError, "row 2, column \"b\": is -inf");
  QUANTRAIN_CHECK_ERROR(number(" "), DataError, "row 2, column \"b\": is empty");
  QUANTRAIN_CHECK_ERROR(number("4x"), DataError, "row 2, column \"b\": \"4x\" is not a number");
  QUANTRAIN_CHECK_ERROR(number("+-4"), DataError, "\"+-4\" is not a number");
  QUANTRAIN_CHECK_ERROR(number("0x10"), DataError, "\"0x10\" is not a number");
  QUANTRAIN_CHECK_ERROR(number("1e39"), DataError, "\"1e39\" is beyond what a float32 can hold");
  QUANTRAIN_CHECK_ERROR(number("-1e999"), DataError, "\"-1e999\" is beyond");
  QUANTRAIN_CHECK_ERROR(number("\x1b[31m\x7f"), DataError, "\"?[31m?\" is not a number");
  CHECK(number("1e-60") == 0.0f);
  CHECK(number("1e-45") == std::numeric_limits<float>::denorm_min());

  const CsvTable table = read_text("a\n1.5\n");
  QUANTRAIN_CHECK_ERROR(table.labels("a"),
                        DataError,
                        "row 1, column \"a\": \"1.5\" is not a 32-bit integer: use classes()");
  QUANTRAIN_CHECK_ERROR(
      read_text("a\n2147483648\n").labels("a"), DataError, "not a 32-bit integer");
  CHECK(read_text("a\n-7\n").labels("a") == std::vector<int32_t>{-7});
  QUANTRAIN_CHECK_ERROR(
      read_text("a,b\n1,\n").classes("b"), DataError, "row 1, column \"b\": is empty");
  QUANTRAIN_CHECK_ERROR(table.floats("z"), DataError, "has no column \"z\"; its columns: a");
  QUANTRAIN_CHECK_ERROR(
      table.floats(std::span<const std::string>()), DataError, "no column is asked for");
  QUANTRAIN_CHECK_ERROR(
      read_text("a,b\n1,2\n").floats("z"), DataError, "has no column \"z\"; its columns: a, b");
  QUANTRAIN_CHECK_ERROR(table.text(1, "a"), DataError, "there is no row 2 in a table of 1");
  QUANTRAIN_CHECK_ERROR(table.text(-1, "a"), DataError, "there is no row 0 in a table of 1");
}

TEST_CASE("the error about a ragged, empty or misquoted row gives the row's number",
          "[data][csv]") {
  QUANTRAIN_CHECK_ERROR(
      read_text("a,b\n1,2\n3\n"), DataError, "x.csv: row 2 has 1 cells, the header has 2");
  QUANTRAIN_CHECK_ERROR(
      read_text("a,b\n1,2,3\n"), DataError, "row 1 has 3 cells, the header has 2");
  QUANTRAIN_CHECK_ERROR(
      read_text("1,2\n3\n", {.header = false}), DataError, "row 2 has 1 cells, row 1 has 2");
  QUANTRAIN_CHECK_ERROR(
      read_text("a,b\n1,2\n\n3,4\n"), DataError, "row 2 is empty: remove the line, or fill it");
  QUANTRAIN_CHECK_ERROR(read_text("\na\n1\n"), DataError, "the header is empty");
  QUANTRAIN_CHECK_ERROR(read_text("a,b\n1,\"2\n"), DataError, "row 1: a quote is not closed");
  QUANTRAIN_CHECK_ERROR(read_text("a,b\n1,\"2\"3\n"),
                        DataError,
                        "row 1: a quoted cell goes on after its closing quote");
  QUANTRAIN_CHECK_ERROR(
      read_text("a,b\n1,2\"3\"\n"), DataError, "row 1: a quote inside a cell that is not quoted");
  QUANTRAIN_CHECK_ERROR(
      read_text("a, a\n1,2\n"), DataError, "columns 1 and 2 are both named \"a\"");
  QUANTRAIN_CHECK_ERROR(read_text("a,\n1,2\n"), DataError, "column 2 has no name");
  QUANTRAIN_CHECK_ERROR(read_text(""), DataError, "x.csv: is empty");
  QUANTRAIN_CHECK_ERROR(read_text("\r\n\n"), DataError, "x.csv: is empty");
  QUANTRAIN_CHECK_ERROR(read_text("a,b\n"), DataError, "has a header and no row");
  for (const char separator : {'"', '\n', '\r'})
    QUANTRAIN_CHECK_ERROR(read_text("a\n1\n", {.separator = separator}),
                          DataError,
                          "the separator of cells cannot be a quote or a line break");
  QUANTRAIN_CHECK_ERROR(read_csv("/nowhere/x.csv"), DataError, "/nowhere/x.csv");
}

TEST_CASE("columns are found by name in a table of many", "[data][csv]") {
  constexpr int kColumns = 20'000;
  std::string text;
  for (int c = 0; c < kColumns; ++c) text += (c == 0 ? "c" : ",c") + std::to_string(c);
  text += '\n';
  for (int c = 0; c < kColumns; ++c) text += (c == 0 ? "" : ",") + std::to_string(c);
  const CsvTable table = read_text(text + '\n');
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<float> values = table.floats(table.columns());
  // A search of all columns for each took 20 times as long.
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(2));
  CHECK(values[19'999] == 19'999.0f);
  CHECK(values[1] == 1.0f);
  try {
    table.floats(std::string(10'000, 'x'));
    FAIL();
  } catch (const DataError& error) {
    const std::string message = error.what();
    CHECK(message.size() < 400);
    CHECK(message.find("c0, c1, c2") != std::string::npos);
    CHECK(message.find("c19 and 19980 more") != std::string::npos);
  }
}

TEST_CASE("numbers too near to 0 are 0, and numbers too far from it are refused", "[data][csv]") {
  const auto number = [](const std::string& text) {
    return read_text("a\n" + text + '\n').floats("a")[0];
  };
  const std::string zeros(500, '0');
  for (const std::string& text : {std::string("1e-300"),
                                  std::string("1e-400"),
                                  std::string("-1e-400"),
                                  std::string("123.456E-99999999999999999999"),
                                  "0." + zeros + "1",
                                  "1" + zeros + "e-1000"}) {
    CAPTURE(text);
    CHECK(number(text) == 0.0f);
  }
  CHECK(std::signbit(number("-1e-400")));
  for (const std::string& text : {std::string("1e39"),
                                  std::string("-1e400"),
                                  std::string("1e+99999999999999999999"),
                                  "1" + zeros,
                                  "0." + zeros + "1e1000"})
    QUANTRAIN_CHECK_ERROR(number(text), DataError, "is beyond what a float32 can hold");
}

}  // namespace quantrain
