#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Writes small ONNX files by hand, with the field numbers of onnx.proto.
namespace quantrain::test {

/// The bytes of a protobuf message.
struct Proto {
  std::string bytes;

  Proto& varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
    bytes += static_cast<char>(value);
    return *this;
  }
  Proto& key(uint32_t field, int wire_type) {
    return varint(uint64_t{field} << 3 | static_cast<uint64_t>(wire_type));
  }
  Proto& integer(uint32_t field, int64_t value) {
    return key(field, 0).varint(static_cast<uint64_t>(value));
  }
  Proto& number(uint32_t field, float value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    key(field, 5).bytes.append(raw, sizeof raw);
    return *this;
  }
  Proto& text(uint32_t field, std::string_view content) {
    key(field, 2).varint(content.size()).bytes += content;
    return *this;
  }
  Proto& message(uint32_t field, const Proto& content) { return text(field, content.bytes); }

  std::vector<uint8_t> file() const { return {bytes.begin(), bytes.end()}; }
};

/// The bytes of these values, as in raw_data.
template <class T>
std::string raw_bytes(const std::vector<T>& values) {
  std::string raw(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  return raw;
}

/// TensorProto without elements. type: 1 float, 6 int32, 7 int64, ...
inline Proto onnx_tensor(std::string_view name, int type, const std::vector<int64_t>& dims) {
  Proto tensor;
  for (const int64_t extent : dims) tensor.integer(1, extent);
  return tensor.integer(2, type).text(8, name);
}
inline Proto onnx_floats(std::string_view name,
                         const std::vector<int64_t>& dims,
                         const std::vector<float>& values) {
  return onnx_tensor(name, 1, dims).text(9, raw_bytes(values));
}
inline Proto onnx_integers(std::string_view name,
                           const std::vector<int64_t>& dims,
                           const std::vector<int64_t>& values) {
  return onnx_tensor(name, 7, dims).text(9, raw_bytes(values));
}

inline Proto onnx_attribute(std::string_view name, int64_t value) {
  return Proto().text(1, name).integer(3, value).integer(20, 2);
}
inline Proto onnx_attribute(std::string_view name, float value) {
  return Proto().text(1, name).number(2, value).integer(20, 1);
}
inline Proto onnx_attribute(std::string_view name, const char* value) {
  return Proto().text(1, name).text(4, value).integer(20, 3);
}
inline Proto onnx_attribute(std::string_view name, const Proto& tensor) {
  return Proto().text(1, name).message(5, tensor).integer(20, 4);
}
inline Proto onnx_attribute(std::string_view name, const std::vector<int64_t>& values) {
  Proto attribute = Proto().text(1, name);
  for (const int64_t value : values) attribute.integer(8, value);
  return attribute.integer(20, 7);
}

inline Proto onnx_node(std::string_view op_type,
                       const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs,
                       const std::vector<Proto>& attributes = {},
                       std::string_view name = {}) {
  Proto node;
  for (const std::string& input : inputs) node.text(1, input);
  for (const std::string& output : outputs) node.text(2, output);
  if (!name.empty()) node.text(3, name);
  node.text(4, op_type);
  for (const Proto& attribute : attributes) node.message(5, attribute);
  return node;
}

/// An input or output of floats. An extent of -1 is called "N".
inline Proto onnx_value(std::string_view name, const std::vector<int64_t>& dims) {
  Proto shape;
  for (const int64_t extent : dims) {
    Proto dimension;
    if (extent < 0) {
      dimension.text(2, "N");
    } else {
      dimension.integer(1, extent);
    }
    shape.message(1, dimension);
  }
  const Proto tensor_type = Proto().integer(1, 1).message(2, shape);
  return Proto().text(1, name).message(2, Proto().message(1, tensor_type));
}

/// The parts of a model.
struct OnnxParts {
  std::vector<Proto> nodes{};
  std::vector<Proto> initializers{};
  std::vector<Proto> inputs{};
  std::vector<Proto> outputs{};
  int64_t opset = 17;
  int64_t ir_version = 8;
};
inline Proto onnx_graph(const OnnxParts& parts) {
  Proto graph;
  for (const Proto& node : parts.nodes) graph.message(1, node);
  graph.text(2, "graph");
  for (const Proto& tensor : parts.initializers) graph.message(5, tensor);
  for (const Proto& input : parts.inputs) graph.message(11, input);
  for (const Proto& output : parts.outputs) graph.message(12, output);
  return graph;
}
inline std::vector<uint8_t> onnx_model(const OnnxParts& parts) {
  return Proto()
      .integer(1, parts.ir_version)
      .text(2, "test")
      .message(7, onnx_graph(parts))
      .message(8, Proto().integer(2, parts.opset))
      .file();
}

/// y = relu(x w^T + b), with w [2, 3].
inline OnnxParts onnx_gemm() {
  return {.nodes = {onnx_node("Gemm",
                              {"x", "w", "b"},
                              {"h"},
                              {onnx_attribute("transB", int64_t{1}), onnx_attribute("alpha", 1.0f)},
                              "fc"),
                    onnx_node("Relu", {"h"}, {"y"})},
          .initializers = {onnx_floats("w", {2, 3}, {1, 2, 3, -4, 5, -6}),
                           onnx_floats("b", {2}, {0.5f, -0.25f})},
          .inputs = {onnx_value("x", {-1, 3})},
          .outputs = {onnx_value("y", {-1, 2})}};
}

}  // namespace quantrain::test
