#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

// Writes .tflite files from lists of tensors and operations. It shares nothing with the reader: its
// numbers are from TFLite's schema again. TFLite's own runtimes accept these files.
namespace quantrain::tflite::test {

/// A flatbuffer that grows at its end: parents come before their children.
class FlatWriter {
 public:
  /// A field of a table: its number, and the 8 bytes that hold a number or, later, an offset.
  using Fields = std::map<int, uint64_t>;

  std::vector<uint8_t> bytes;

  void align(size_t multiple, size_t rest = 0) {
    while (bytes.size() % multiple != rest) bytes.push_back(0);
  }
  template <class T>
  void put(T value) {
    const auto* const from = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), from, from + sizeof value);
  }
  template <class T>
  void set(size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  /// The offset at `from` points to `to`.
  void point(size_t from, size_t to) { set(from, static_cast<uint32_t>(to - from)); }

  /// Writes a table. Returns where its fields are: point() gives them children.
  std::map<int, size_t> table(const Fields& fields, size_t parent) {
    const int count = fields.empty() ? 0 : fields.rbegin()->first + 1;
    align(8);
    const size_t list = bytes.size();
    put(static_cast<uint16_t>(4 + 2 * count));
    put(static_cast<uint16_t>(8 + 8 * fields.size()));
    uint16_t offset = 8;
    for (int i = 0; i < count; ++i) {
      put(fields.count(i) > 0 ? offset : uint16_t{0});
      if (fields.count(i) > 0) offset = static_cast<uint16_t>(offset + 8);
    }
    align(8);
    const size_t begin = bytes.size();
    point(parent, begin);
    put(static_cast<int32_t>(begin - list));
    put(int32_t{0});
    std::map<int, size_t> places;
    for (const auto& [field, value] : fields) {
      places[field] = bytes.size();
      put(value);
    }
    return places;
  }
  template <class T>
  void vector(const std::vector<T>& values, size_t parent) {
    align(16, 12);  // so that the numbers are aligned
    point(parent, bytes.size());
    put(static_cast<uint32_t>(values.size()));
    for (const T value : values) put(value);
  }
  void text(const std::string& text, size_t parent) {
    vector(std::vector<char>(text.begin(), text.end()), parent);
    bytes.push_back(0);
  }
  /// A vector of `count` tables. Returns where their offsets are.
  std::vector<size_t> tables(size_t count, size_t parent) {
    vector(std::vector<uint32_t>(count), parent);
    std::vector<size_t> places;
    for (size_t i = 0; i < count; ++i) places.push_back(bytes.size() - 4 * (count - i));
    return places;
  }
};

// Types of elements, paddings and fused activations.
inline constexpr int8_t kFloat32 = 0, kInt32 = 2, kUint8 = 3, kInt64 = 4, kInt16 = 7, kInt8 = 9,
                        kInt4 = 17;
inline constexpr int8_t kSame = 0, kValid = 1;
inline constexpr int8_t kNone = 0, kRelu = 1, kReluN1To1 = 2, kRelu6 = 3;

/// Numbers as the bytes of a constant.
template <class T>
std::vector<uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
inline uint64_t float_bits(float value) { return std::bit_cast<uint32_t>(value); }

struct TensorSpec {
  std::string name{};
  std::vector<int32_t> shape{};
  int8_t type = kInt8;
  std::vector<float> scale{};
  std::vector<int64_t> zero_point{};
  std::vector<uint8_t> data{};
  int32_t axis = 0;
};

struct OperationSpec {
  int32_t code = 0;
  std::vector<int32_t> inputs{}, outputs{};
  FlatWriter::Fields options{};
  int8_t options_type = 0;
  std::string custom{};
};

struct FileSpec {
  std::vector<TensorSpec> tensors{};
  std::vector<OperationSpec> operations{};
  std::vector<int32_t> inputs{}, outputs{};

  int32_t add(TensorSpec tensor) {
    if (tensor.name.empty()) tensor.name = "t" + std::to_string(tensors.size());
    tensors.push_back(std::move(tensor));
    return static_cast<int32_t>(tensors.size()) - 1;
  }
  /// A list of int32, such as axes.
  int32_t list(const std::vector<int32_t>& values) {
    return add(
        {.shape = {static_cast<int32_t>(values.size())}, .type = kInt32, .data = bytes_of(values)});
  }

  std::vector<uint8_t> write() const {
    FlatWriter w;
    w.put(uint32_t{0});
    for (const char c : {'T', 'F', 'L', '3'}) w.put(c);
    // The model: version, operator codes, graphs, buffers.
    const auto model = w.table({{0, 3}, {1, 0}, {2, 0}, {4, 0}}, 0);
    const std::vector<size_t> codes = w.tables(operations.size(), model.at(1));
    for (size_t i = 0; i < operations.size(); ++i) {
      const OperationSpec& op = operations[i];
      FlatWriter::Fields fields{{0, static_cast<uint8_t>(op.code < 127 ? op.code : 127)},
                                {2, 1},
                                {3, static_cast<uint64_t>(op.code)}};
      if (!op.custom.empty()) fields[1] = 0;
      const auto places = w.table(fields, codes[i]);
      if (!op.custom.empty()) w.text(op.custom, places.at(1));
    }
    const size_t graphs = w.tables(1, model.at(2))[0];
    const auto graph = w.table({{0, 0}, {1, 0}, {2, 0}, {3, 0}}, graphs);
    const std::vector<size_t> places = w.tables(tensors.size(), graph.at(0));
    for (size_t i = 0; i < tensors.size(); ++i) {
      const TensorSpec& t = tensors[i];
      // Buffer 0 is empty.
      const uint64_t buffer = t.data.empty() ? 0 : i + 1;
      FlatWriter::Fields fields{{0, 0}, {1, static_cast<uint8_t>(t.type)}, {2, buffer}, {3, 0}};
      if (!t.scale.empty()) fields[4] = 0;
      const auto tensor = w.table(fields, places[i]);
      w.vector(t.shape, tensor.at(0));
      w.text(t.name, tensor.at(3));
      if (t.scale.empty()) continue;
      const auto quantization =
          w.table({{2, 0}, {3, 0}, {6, static_cast<uint32_t>(t.axis)}}, tensor.at(4));
      w.vector(t.scale, quantization.at(2));
      w.vector(t.zero_point, quantization.at(3));
    }
    w.vector(inputs, graph.at(1));
    w.vector(outputs, graph.at(2));
    const std::vector<size_t> steps = w.tables(operations.size(), graph.at(3));
    for (size_t i = 0; i < operations.size(); ++i) {
      const OperationSpec& op = operations[i];
      FlatWriter::Fields fields{{0, i}, {1, 0}, {2, 0}};
      if (!op.options.empty()) {
        fields[3] = static_cast<uint8_t>(op.options_type);
        fields[4] = 0;
      }
      const auto step = w.table(fields, steps[i]);
      w.vector(op.inputs, step.at(1));
      w.vector(op.outputs, step.at(2));
      if (!op.options.empty()) w.table(op.options, step.at(4));
    }
    const std::vector<size_t> buffers = w.tables(tensors.size() + 1, model.at(4));
    for (size_t i = 0; i <= tensors.size(); ++i) {
      const bool full = i > 0 && !tensors[i - 1].data.empty();
      const auto buffer =
          w.table(full ? FlatWriter::Fields{{0, 0}} : FlatWriter::Fields{}, buffers[i]);
      if (full) w.vector(tensors[i - 1].data, buffer.at(0));
    }
    w.align(4);
    return w.bytes;
  }
};

}  // namespace quantrain::tflite::test
