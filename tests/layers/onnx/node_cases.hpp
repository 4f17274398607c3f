#pragma once

#include <string>
#include <vector>

namespace quantrain::test {

/// What became of one of ONNX's own test cases: a model, its inputs and the expected outputs.
struct NodeCase {
  enum class Result {
    kEqual,    ///< imported, and the network computes the expected outputs
    kFolded,   ///< with all inputs as constants, the importer computes the expected outputs
    kRefused,  ///< `reason` is the error
    kWrong,    ///< imported, but computes something else
  };
  std::string name;
  Result result = Result::kRefused;
  std::string reason{};
};

/// The folder of Debian's package libonnx-testdata; empty if it is not installed.
std::string onnx_cases_folder();
/// All cases of the folders node, pytorch-converted, pytorch-operator and simple: "node/test_abs".
std::vector<std::string> onnx_case_names(const std::string& folder);
NodeCase run_node_case(const std::string& folder, const std::string& name);

}  // namespace quantrain::test
