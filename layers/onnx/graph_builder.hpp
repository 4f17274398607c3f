#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "layers/onnx/model.hpp"

namespace quantrain::onnx {

/// The element type of tensors that hold values of a C++ type.
template <class T>
constexpr ElementType element_type() {
  if constexpr (std::same_as<T, float>) return ElementType::kFloat;
  if constexpr (std::same_as<T, double>) return ElementType::kDouble;
  if constexpr (std::same_as<T, uint8_t>) return ElementType::kUint8;
  if constexpr (std::same_as<T, int8_t>) return ElementType::kInt8;
  if constexpr (std::same_as<T, int32_t>) return ElementType::kInt32;
  if constexpr (std::same_as<T, int64_t>) return ElementType::kInt64;
  if constexpr (std::same_as<T, uint64_t>) return ElementType::kUint64;
}

/// A tensor that owns its bytes.
StoredTensor make_tensor(std::string name,
                         ElementType type,
                         std::vector<int64_t> dims,
                         std::vector<uint8_t> bytes);

/// Makes an ONNX graph node by node, in the order in which the nodes run. Every value has one
/// output's name, so a node is added and named by its result:
///   const std::string sum = graph.node("Add", {x, graph.constant<float>({8}, bias)});
class GraphBuilder {
 public:
  /// The following nodes and values are named "<scope>/<operator>".
  void set_scope(std::string scope) { scope_ = std::move(scope); }
  /// Adds a node and returns the name of its output. output: the name of the output; if empty, it
  /// is taken from the scope.
  std::string node(std::string_view op_type,
                   std::vector<std::string> inputs,
                   std::vector<Attribute> attributes = {},
                   std::string output = {});

  /// Adds a constant and returns its name, "<scope>/<what>". Small equal constants are shared.
  template <class T>
  std::string constant(const std::vector<int64_t>& dims,
                       const std::vector<T>& values,
                       std::string_view what = "constant") {
    const auto* const first = reinterpret_cast<const uint8_t*>(values.data());
    return constant(element_type<T>(), dims, {first, first + values.size() * sizeof(T)}, what);
  }
  std::string constant(ElementType type,
                       const std::vector<int64_t>& dims,
                       std::vector<uint8_t> bytes,
                       std::string_view what);
  /// A constant of this name, or one like it if it is taken.
  template <class T>
  std::string named_constant(const std::string& name,
                             const std::vector<int64_t>& dims,
                             const std::vector<T>& values) {
    const auto* const first = reinterpret_cast<const uint8_t*>(values.data());
    const std::string taken = take_name(name);
    graph_.initializers.push_back(
        make_tensor(taken, element_type<T>(), dims, {first, first + values.size() * sizeof(T)}));
    return taken;
  }
  template <class T>
  std::string scalar(T value, std::string_view what = "constant") {
    return constant<T>({}, {value}, what);
  }

  void input(const std::string& name, ElementType type, const std::vector<int64_t>& sample);
  void output(const std::string& name, ElementType type, const std::vector<int64_t>& sample);

  /// The name, or one like it if it is taken. Takes it.
  std::string take_name(const std::string& name);
  Graph take() { return std::move(graph_); }

 private:
  Graph graph_;
  std::string scope_;
  std::set<std::string> names_;
  std::map<std::string, int> repeats_;
  std::map<std::string, std::string> shared_;  // small constants by their content
};

}  // namespace quantrain::onnx
