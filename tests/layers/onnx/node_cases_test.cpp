#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/catch.hpp"
#include "tests/layers/onnx/node_cases.hpp"

namespace quantrain {
namespace {

using test::NodeCase;

// Of the package libonnx-testdata 1.12, which Debian 12 has: the cases that must pass, and those
// that are constants only.
const std::vector<std::string_view> kEqual{
#include "tests/layers/onnx/equal_cases.inc"
};
const std::vector<std::string_view> kFolded{
#include "tests/layers/onnx/folded_cases.inc"
};

TEST_CASE("ONNX's own test cases are computed as expected, or refused", "[layers][onnx]") {
  const std::string folder = test::onnx_cases_folder();
  if (folder.empty()) {
    WARN("SKIPPED: libonnx-testdata is not installed");
    return;
  }
  const std::vector<std::string> names = test::onnx_case_names(folder);
  std::set<std::string> equal, folded;
  for (const std::string& name : names) {
    const NodeCase result = test::run_node_case(folder, name);
    CAPTURE(name, result.reason);
    CHECK(result.result != NodeCase::Result::kWrong);
    if (result.result == NodeCase::Result::kEqual) equal.insert(name);
    if (result.result == NodeCase::Result::kFolded) folded.insert(name);
  }
  // Other versions lack some of the cases, or write them in another way.
  const auto lacking = [&](const std::vector<std::string_view>& wanted,
                           const std::set<std::string>& passed) {
    std::vector<std::string_view> lacks;
    for (const std::string_view name : wanted) {
      const bool is_there = std::find(names.begin(), names.end(), name) != names.end();
      if (is_there && !passed.contains(std::string(name))) lacks.push_back(name);
    }
    return lacks;
  };
  CHECK(lacking(kEqual, equal) == std::vector<std::string_view>{});
  CHECK(lacking(kFolded, folded) == std::vector<std::string_view>{});
}

}  // namespace
}  // namespace quantrain
