#include "framework/core/error.hpp"
#include "quant/export/c99/text.hpp"
#include "tests/catch.hpp"

// The places of sections of the C core.
namespace quantrain::c99 {

TEST_CASE("a section's places get their values, and conditions and inner sections go",
          "[quant][c99]") {
  CHECK(fill("gather_fill", {{"CODE", 3}, {"BYTES", 20}}) == "memset(y, 3, 20);\ny += 20;\n");
  // The first lines of a loop, with and without its condition; the body is indented.
  const auto loop = [](bool repeats) {
    return fill("gather_regular",
                {{"K", 1},
                 {"SIZE", 4},
                 {"FROM", "x"},
                 {"REPEATS", repeats},
                 {"REPEAT", 2},
                 {"STRIDE", 3},
                 {"BODY", "a;\n\n#if B\nc;\n#endif\n"}});
  };
  CHECK(loop(true) ==
        "for (i1 = 0; i1 < 4; ++i1) {\n  const uint8_t *const x1 = x + i1 / 2 * (3);\n  a;\n\n#if "
        "B\n  c;\n#endif\n}\n");
  CHECK(loop(false).find("x + i1 * (3);") != std::string::npos);
  // The inner section is a place of the outer one.
  const std::string concat = fill(
      "concat_step", {{"ID", "_7"}, {"OPERANDS", "A"}, {"ROWS", 2}, {"CONCAT_PARTS", "B;\nC;\n"}});
  CHECK(concat ==
        "static void step_7(A, uint8_t *y) {\n  int32_t i, j;\n  for (i = 0; i < 2; ++i) {\n    "
        "B;\n    C;\n  }\n}\n");
}

TEST_CASE("sections, places and values that do not fit are errors", "[quant][c99]") {
  QUANTRAIN_CHECK_ERROR(
      fill("no_section"), ExportError, "[c99] the core has no section no_section");
  QUANTRAIN_CHECK_ERROR(fill("gather_fill", {{"CODE", 3}}),
                        ExportError,
                        "[c99] the place $BYTES$ of section gather_fill has no value");
  QUANTRAIN_CHECK_ERROR(fill("gather_code", {{"FROM", "x"}, {"BYTES", 1}}),
                        ExportError,
                        "[c99] section gather_code has no place $BYTES$");
  // Shared values need no place.
  const Named shared[] = {{"FROM", "x"}, {"BYTES", 1}};
  CHECK(fill("gather_code", {}, shared) == "*y++ = *(x);\n");
}

}  // namespace quantrain::c99
