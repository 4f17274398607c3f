#include "layers/onnx/refused_nodes.hpp"

#include <algorithm>

namespace quantrain::onnx {

void RefusedNodes::add(const Node& node, const std::string& reason) {
  const std::string kind = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
  const std::string what = reason.empty() ? kind : kind + " (" + reason + ")";
  nodes_[what].push_back(node.name.empty() ? node.label() : node.name);
}

std::string RefusedNodes::list() const {
  constexpr size_t kMostNames = 8;
  std::string list;
  for (const auto& [what, names] : nodes_) {
    list += "\n  " + what + ": ";
    list += names.size() == 1 ? "1 use, " : std::to_string(names.size()) + " uses, ";
    for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i)
      list += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > kMostNames) list += ", ...";
  }
  return list;
}

}  // namespace quantrain::onnx
