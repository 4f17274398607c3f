#pragma once

#include <map>
#include <string>
#include <vector>

#include "layers/onnx/model.hpp"

namespace quantrain::onnx {

/// Nodes that cannot be imported, for a message that lists all of them.
class RefusedNodes {
 public:
  /// reason: empty if the operator itself says enough.
  void add(const Node& node, const std::string& reason);
  bool empty() const { return nodes_.empty(); }
  /// A line for each operator and reason: "\n  Conv (weights of another rank): 2 uses, a, b".
  std::string list() const;

 private:
  std::map<std::string, std::vector<std::string>> nodes_;  // what, and their names
};

}  // namespace quantrain::onnx
