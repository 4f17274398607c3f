#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "layers/onnx/schema.hpp"

// An ONNX file as plain data. read_model() makes it, write_model() writes it; nothing here knows
// how it is encoded.
namespace quantrain::onnx {

/// Bytes, and what keeps them alive.
struct Bytes {
  std::shared_ptr<const void> owner;
  std::span<const uint8_t> view;
};

/// A dense array of constants. Its elements are row-major and little-endian, two of 4 bits in each
/// byte (the first in the low half).
struct StoredTensor {
  std::string name;
  ElementType type = ElementType::kUndefined;
  std::vector<int64_t> dims;
  Bytes bytes;  ///< exactly the elements of dims

  /// Product of dims, which the reader has checked for overflow.
  int64_t elements() const;
};

/// An attribute that is neither a number, a text, a tensor nor a list of them, such as a graph.
struct OtherAttribute {
  int32_t type = 0;
};

struct Attribute {
  std::string name;
  std::variant<float,
               int64_t,
               std::string,
               StoredTensor,
               std::vector<float>,
               std::vector<int64_t>,
               std::vector<std::string>,
               OtherAttribute>
      value;
};

struct Node {
  std::string name;
  std::string op_type;
  std::string domain;                ///< empty for ONNX's own operators
  std::vector<std::string> inputs;   ///< an empty name: this optional input is absent
  std::vector<std::string> outputs;  ///< an empty name: nobody reads this output
  std::vector<Attribute> attributes;

  const Attribute* find(std::string_view attribute) const;
  /// The attribute's value, or `otherwise` if the node does not have it.
  /// Throws: DataError naming the node if the attribute has another type.
  int64_t get(std::string_view attribute, int64_t otherwise) const;
  float get(std::string_view attribute, float otherwise) const;
  std::string get(std::string_view attribute, const char* otherwise) const;
  std::vector<int64_t> get(std::string_view attribute, std::vector<int64_t> otherwise) const;
  std::vector<float> get(std::string_view attribute, std::vector<float> otherwise) const;
  /// How messages name the node: "Conv conv1", or "Conv at y" (its first output) without a name.
  std::string label() const;
};

/// An extent of an input or output. The value is -1 if it is not known; it then may have a name.
struct Dimension {
  int64_t value = -1;
  std::string name;
};

struct ValueInfo {
  std::string name;
  ElementType type = ElementType::kUndefined;  ///< kUndefined: not a dense tensor
  bool has_shape = false;
  std::vector<Dimension> dims{};
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<StoredTensor> initializers;
  /// Old files also list every initializer here.
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
};

struct OperatorSet {
  std::string domain;  ///< empty for ONNX's own operators
  int64_t version = 0;
};

struct Model {
  std::string path;  ///< for messages
  int64_t ir_version = 0;
  std::string producer;
  std::string producer_version{};
  std::vector<OperatorSet> operator_sets;
  std::vector<std::pair<std::string, std::string>> metadata{};
  Graph graph;
  int64_t file_bytes = 0;  ///< of the file and of the external data that were read

  /// Version of ONNX's own operators; 0 if the file does not say.
  int64_t opset() const;
};

}  // namespace quantrain::onnx
