#include "framework/core/text_table.hpp"

#include <sstream>

#include "framework/core/error.hpp"
#include "framework/core/text_stream.hpp"
#include "tests/catch.hpp"

namespace quantrain {

TEST_CASE("a column is as wide as its widest cell, ignoring the last cells of short rows",
          "[core][text]") {
  TextTable table("lrl");
  table.add({"layer", "bytes", "kernel"}).add({"0", "1,000,000", "gemm"}).add({"wide name", "7"});
  table.add({"x", "has a reason that is longer than its column"});
  std::ostringstream text;
  text << table;
  CHECK(text.str() ==
        "layer          bytes  kernel\n"
        "0          1,000,000  gemm\n"
        "wide name          7\n"
        "x          has a reason that is longer than its column\n");
  std::ostringstream none;
  none << TextTable("l");
  CHECK(none.str().empty());
  QUANTRAIN_CHECK_ERROR(table.add({}), DataError, "[table] a row of 0 cells for 3 columns");
  QUANTRAIN_CHECK_ERROR(table.add({"a", "b", "c", "d"}), DataError, "a row of 4 cells for 3 col");
}

TEST_CASE("numbers are grouped by thousands", "[core][text]") {
  CHECK(decimals(3.5, 2) == "3.50");
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1,000");
  CHECK(grouped(-123456) == "-123,456");
  CHECK(grouped(-1234567) == "-1,234,567");
}

TEST_CASE("a reason at the end of a row stays whole", "[core][text_table]") {
  const std::string reason(1000, 'r');
  TextTable table("ll");
  table.add({"layer", reason});
  TextStream text;
  text << table;
  CHECK(text.str() == "layer  " + reason + "\n");
}

TEST_CASE("a long name does not make all rows of a table wide", "[core][text_table]") {
  TextTable table("lr");
  table.add({std::string(1'000'000, 'x'), "1"});
  for (int i = 0; i < 1000; ++i) table.add({"a\x1b", "2"});
  TextStream text;
  text << table;
  CHECK(text.str().size() < 300'000);
  CHECK(text.str().find('\x1b') == std::string::npos);
}

}  // namespace quantrain
