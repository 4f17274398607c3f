#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "layers/onnx/model.hpp"

namespace quantrain::test {

/// A dense array of doubles in the file's order.
struct Array {
  std::vector<int64_t> dims;
  std::vector<double> v;
};

/// Computes a graph node by node, as onnx/docs/Operators.md defines the operators, with the obvious
/// loops over [N, C, H, W]. It knows the operators of onnx_networks.hpp only.
std::map<std::string, Array> onnx_reference(const onnx::Graph& graph,
                                            std::map<std::string, Array> values);

}  // namespace quantrain::test
