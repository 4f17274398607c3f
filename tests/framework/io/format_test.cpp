#include "framework/io/format.hpp"

#include "framework/core/error.hpp"
#include "tests/catch.hpp"

namespace quantrain {

TEST_CASE("a file records its format, version and layout", "[io][format]") {
  TensorFile file;
  set_format(file, "weights", "3");
  CHECK(file.metadata == std::map<std::string, std::string>{
                             {"format", "weights"}, {"layout", "NHWC/OHWI"}, {"version", "3"}});
  CHECK_NOTHROW(check_format("a", file, "weights", "3"));
}

TEST_CASE("a file with a wrong or missing format, version or layout is refused", "[io][format]") {
  TensorFile file;
  QUANTRAIN_CHECK_ERROR(check_format("a", file, "weights", "3"),
                        DataError,
                        "[load] a: the file does not say its layout; expected \"NHWC/OHWI\"");
  set_format(file, "weights", "3");
  QUANTRAIN_CHECK_ERROR(check_format("a", file, "integers", "3"),
                        DataError,
                        "[load] a: format is \"weights\", expected \"integers\"");
  QUANTRAIN_CHECK_ERROR(
      check_format("a", file, "weights", "4"), DataError, "version is \"3\", expected \"4\"");
  file.metadata["layout"] = "NCHW/OIHW";
  QUANTRAIN_CHECK_ERROR(check_format("a", file, "weights", "3"),
                        DataError,
                        "layout is \"NCHW/OIHW\", expected \"NHWC/OHWI\"");
}

}  // namespace quantrain
