#pragma once

#include <string>
#include <vector>

#include "layers/onnx/constant.hpp"

namespace quantrain::onnx {

/// Names of the operators that fold_arithmetic() computes, element by element.
const std::vector<std::string>& arithmetic_names();
/// Throws: like fold().
Constant fold_arithmetic(const std::string& op_type,
                         const std::vector<const Constant*>& inputs,
                         FoldBudget& budget);

/// The shape to which both broadcast. Throws: Refusal.
std::vector<int64_t> broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b);
/// For each index of a broadcast array, the index in the original.
class BroadcastIndex {
 public:
  BroadcastIndex(const std::vector<int64_t>& from, const std::vector<int64_t>& to);
  int64_t operator()(int64_t i) const;

 private:
  std::vector<int64_t> to_;
  std::vector<int64_t> stride_;  // in the original; 0 where it repeats
};

}  // namespace quantrain::onnx
