#include "layers/onnx/reader.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/shape.hpp"
#include "framework/core/system/file.hpp"
#include "layers/onnx/elements.hpp"
#include "layers/onnx/external_data.hpp"
#include "layers/onnx/message.hpp"

namespace quantrain::onnx {
namespace {

/// Of a node. ONNX's own operators have at most 20. A node's attributes are searched one by one.
constexpr size_t kMostAttributes = 256;

std::string normalized(std::string domain) { return domain == "ai.onnx" ? "" : domain; }

/// Reads the messages of one file.
class Reader {
 public:
  Reader(std::string path, std::string folder, Bytes file)
      : budget_{.path = path},
        external_(std::move(path), std::move(folder)),
        file_(std::move(file)) {}

  Model model();
  StoredTensor tensor(Message message);
  Message root(std::string_view what) { return {budget_, what, file_.view}; }

 private:
  Graph graph(Message message);
  Node node(Message message);
  Attribute attribute(Message message);
  ValueInfo value_info(Message message);
  OperatorSet operator_set(Message message);
  void tensor_type(Message message, ValueInfo& info);
  Dimension dimension(Message message);
  std::pair<std::string, std::string> string_entry(Message message);
  /// Elements that stand in one of the typed fields, as bytes.
  Bytes typed_elements(const Message& message, const StoredTensor& tensor);

  ReadBudget budget_;
  ExternalFiles external_;
  Bytes file_;
};

Model Reader::model() {
  Model model;
  model.path = budget_.path;
  Message message = root("the model");
  std::optional<Message> graph_message;
  while (message.next()) {
    switch (message.field()) {
      case field::Model::kIrVersion: model.ir_version = message.integer(); break;
      case field::Model::kProducerName: model.producer = message.text(); break;
      case field::Model::kProducerVersion: model.producer_version = message.text(); break;
      case field::Model::kMetadata:
        model.metadata.push_back(string_entry(message.message("metadata")));
        break;
      case field::Model::kOpsetImport:
        model.operator_sets.push_back(operator_set(message.message("an operator set")));
        break;
      case field::Model::kGraph:
        if (graph_message) message.fail("the model has two graphs");
        graph_message = message.message("the graph");
        break;
      default: break;
    }
  }
  if (!graph_message) throw DataError("onnx", budget_.path, ": is no ONNX model: it has no graph");
  model.graph = graph(*graph_message);
  model.file_bytes = static_cast<int64_t>(file_.view.size()) + external_.bytes();
  return model;
}

OperatorSet Reader::operator_set(Message message) {
  OperatorSet set;
  while (message.next()) {
    if (message.field() == field::OperatorSet::kDomain) set.domain = normalized(message.text());
    if (message.field() == field::OperatorSet::kVersion) set.version = message.integer();
  }
  return set;
}

Graph Reader::graph(Message message) {
  Graph graph;
  while (message.next()) {
    switch (message.field()) {
      case field::Graph::kName: graph.name = message.text(); break;
      case field::Graph::kNode: graph.nodes.push_back(node(message.message("a node"))); break;
      case field::Graph::kInitializer:
        graph.initializers.push_back(tensor(message.message("an initializer")));
        if (graph.initializers.back().name.empty()) message.fail("an initializer has no name");
        break;
      case field::Graph::kInput:
        graph.inputs.push_back(value_info(message.message("an input")));
        break;
      case field::Graph::kOutput:
        graph.outputs.push_back(value_info(message.message("an output")));
        break;
      case field::Graph::kSparseInitializer: message.fail("sparse initializers are not read");
      default: break;
    }
  }
  return graph;
}

Node Reader::node(Message message) {
  Node node;
  while (message.next()) {
    switch (message.field()) {
      case field::Node::kInput: node.inputs.push_back(message.text()); break;
      case field::Node::kOutput: node.outputs.push_back(message.text()); break;
      case field::Node::kName: node.name = message.text(); break;
      case field::Node::kOpType: node.op_type = message.text(); break;
      case field::Node::kDomain: node.domain = normalized(message.text()); break;
      case field::Node::kAttribute: {
        if (node.attributes.size() == kMostAttributes)
          message.fail("a node has more than 256 attributes");
        Attribute read = attribute(message.message("an attribute"));
        if (node.find(read.name) != nullptr) message.fail("two attributes are named " + read.name);
        node.attributes.push_back(std::move(read));
        break;
      }
      default: break;
    }
  }
  if (node.op_type.empty()) message.fail("a node has no operator");
  if (node.outputs.empty()) message.fail("a node has no output: " + node.op_type);
  return node;
}

Attribute Reader::attribute(Message message) {
  Attribute attribute;
  int32_t type = 0;
  float number = 0.0f;
  int64_t integer = 0;
  std::string text;
  std::vector<float> numbers;
  std::vector<int64_t> integers;
  std::vector<std::string> texts;
  std::optional<Message> tensor_message;
  while (message.next()) {
    switch (message.field()) {
      case field::Attribute::kName: attribute.name = message.text(); break;
      case field::Attribute::kType: type = message.small_integer(); break;
      case field::Attribute::kFloat: number = message.number(); break;
      case field::Attribute::kInt: integer = message.integer(); break;
      case field::Attribute::kString: text = message.text(); break;
      case field::Attribute::kTensor:
        tensor_message = message.message("an attribute's tensor");
        break;
      case field::Attribute::kFloats: message.append_to(numbers); break;
      case field::Attribute::kInts: message.append_to(integers); break;
      case field::Attribute::kStrings: texts.push_back(message.text()); break;
      case field::Attribute::kReference: message.fail("refers to a function, which is not read");
      default: break;
    }
  }
  if (attribute.name.empty()) message.fail("an attribute has no name");
  switch (static_cast<AttributeType>(type)) {
    case AttributeType::kFloat: attribute.value = number; break;
    case AttributeType::kInt: attribute.value = integer; break;
    case AttributeType::kString: attribute.value = std::move(text); break;
    case AttributeType::kFloats: attribute.value = std::move(numbers); break;
    case AttributeType::kInts: attribute.value = std::move(integers); break;
    case AttributeType::kStrings: attribute.value = std::move(texts); break;
    case AttributeType::kTensor:
      if (!tensor_message) message.fail("the attribute " + attribute.name + " lacks its tensor");
      attribute.value = tensor(*tensor_message);
      break;
    default: attribute.value = OtherAttribute{type};
  }
  return attribute;
}

ValueInfo Reader::value_info(Message message) {
  ValueInfo info;
  while (message.next()) {
    if (message.field() == field::ValueInfo::kName) info.name = message.text();
    if (message.field() != field::ValueInfo::kType) continue;
    Message type = message.message("a type");
    while (type.next()) {
      if (type.field() == field::Type::kTensor) tensor_type(type.message("a tensor's type"), info);
    }
  }
  if (info.name.empty()) message.fail("an input or output has no name");
  return info;
}

void Reader::tensor_type(Message message, ValueInfo& info) {
  while (message.next()) {
    if (message.field() == field::TensorType::kElementType)
      info.type = static_cast<ElementType>(message.small_integer());
    if (message.field() != field::TensorType::kShape) continue;
    info.has_shape = true;
    info.dims.clear();
    Message shape = message.message("a shape");
    while (shape.next()) {
      if (shape.field() != field::TensorShape::kDim) continue;
      if (info.dims.size() == Shape::kMaxRank)
        message.fail("an input or output has more than 8 axes");
      info.dims.push_back(dimension(shape.message("an extent")));
    }
  }
}

Dimension Reader::dimension(Message message) {
  Dimension dimension;
  while (message.next()) {
    if (message.field() == field::Dimension::kValue) dimension.value = message.integer();
    if (message.field() == field::Dimension::kParam) dimension.name = message.text();
  }
  if (dimension.value < -1) message.fail("an extent is negative");
  return dimension;
}

std::pair<std::string, std::string> Reader::string_entry(Message message) {
  std::pair<std::string, std::string> entry;
  while (message.next()) {
    if (message.field() == field::StringEntry::kKey) entry.first = message.text();
    if (message.field() == field::StringEntry::kValue) entry.second = message.text();
  }
  return entry;
}

/// Bytes that `size` elements of the dims and type need. Throws: DataError.
int64_t checked_size(const Message& message, const StoredTensor& tensor) {
  if (tensor.dims.size() > Shape::kMaxRank) message.fail("a tensor has more than 8 axes");
  int64_t nonzero = 1;  // product of the extents that are not 0
  bool is_empty = false;
  for (const int64_t extent : tensor.dims) {
    if (extent < 0) message.fail("the tensor \"" + tensor.name + "\" has a negative extent");
    is_empty = is_empty || extent == 0;
    if (extent != 0 && nonzero > (int64_t{1} << 56) / extent)
      message.fail("the shape of the tensor \"" + tensor.name + "\" overflows");
    nonzero *= std::max<int64_t>(extent, 1);
  }
  const int64_t elements = is_empty ? 0 : nonzero;
  const int64_t bits = bits_of(tensor.type);
  if (bits == 0) {
    message.fail("the tensor \"" + tensor.name + "\" has elements of type " +
                 std::string(name_of(tensor.type)) + ", which are not read");
  }
  return (elements * bits + 7) / 8;
}

StoredTensor Reader::tensor(Message message) {
  StoredTensor tensor;
  std::optional<std::span<const uint8_t>> raw;
  bool is_external = false;
  ExternalEntries entries;
  Message typed = message;  // reads the typed fields, once the type is known
  while (message.next()) {
    switch (message.field()) {
      case field::Tensor::kName: tensor.name = message.text(); break;
      case field::Tensor::kDims: message.append_to(tensor.dims); break;
      case field::Tensor::kDataType:
        tensor.type = static_cast<ElementType>(message.small_integer());
        break;
      case field::Tensor::kRawData: raw = message.bytes(); break;
      case field::Tensor::kSegment: message.fail("tensors in segments are not read");
      case field::Tensor::kDataLocation: is_external = message.integer() == 1; break;
      case field::Tensor::kExternalData:
        entries.push_back(string_entry(message.message("external data")));
        break;
      default: break;
    }
  }
  const int64_t size = checked_size(message, tensor);
  if (is_external) {
    tensor.bytes = external_.read(tensor.name, entries, size);
    return tensor;
  }
  tensor.bytes = raw ? Bytes{file_.owner, *raw} : typed_elements(typed, tensor);
  if (static_cast<int64_t>(tensor.bytes.view.size()) != size) {
    throw DataError("onnx",
                    budget_.path,
                    ": the tensor \"",
                    tensor.name,
                    "\" has ",
                    tensor.bytes.view.size(),
                    " bytes of elements, but its shape and type (",
                    name_of(tensor.type),
                    ") need ",
                    size);
  }
  return tensor;
}

/// The field in which elements of this type stand if they are not raw.
uint32_t typed_field(ElementType type) {
  switch (type) {
    case ElementType::kFloat: return field::Tensor::kFloatData;
    case ElementType::kDouble: return field::Tensor::kDoubleData;
    case ElementType::kInt64: return field::Tensor::kInt64Data;
    case ElementType::kUint32:
    case ElementType::kUint64: return field::Tensor::kUint64Data;
    default: return field::Tensor::kInt32Data;
  }
}

Bytes Reader::typed_elements(const Message& message, const StoredTensor& tensor) {
  const uint32_t wanted = typed_field(tensor.type);
  const bool is_fixed = tensor.type == ElementType::kFloat || tensor.type == ElementType::kDouble;
  const auto element_bytes = static_cast<size_t>(std::max(bits_of(tensor.type) / 8, 1));
  // Two elements of 4 bits are one byte, and 16-bit floats stand here as their bits.
  const bool is_packed = bits_of(tensor.type) == 4;
  const bool is_bits = bits_of(tensor.type) == 16 && is_float(tensor.type);
  const auto [least, most] = range_of(is_packed ? ElementType::kUint8
                                      : is_bits ? ElementType::kUint16
                                                : tensor.type);
  auto owner = std::make_shared<std::vector<uint8_t>>();
  std::span<const uint8_t> first;  // a single list of floats is used as it is, without a copy
  std::vector<int64_t> integers;
  Message fields = message;
  while (fields.next()) {
    if (fields.field() != wanted) continue;
    if (is_fixed) {
      const std::span<const uint8_t> values = fields.fixed(element_bytes);
      if (first.empty() && owner->empty()) {
        first = values;
        continue;
      }
      owner->insert(owner->end(), first.begin(), first.end());
      owner->insert(owner->end(), values.begin(), values.end());
      first = {};
      continue;
    }
    integers.clear();
    fields.append_to(integers);
    for (const int64_t value : integers) {
      if (value < least || value > most) {
        fields.fail("an element of the tensor \"" + tensor.name + "\" is not of type " +
                    std::string(name_of(tensor.type)));
      }
      for (size_t byte = 0; byte < element_bytes; ++byte)
        owner->push_back(static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * byte)));
    }
  }
  if (!first.empty()) return {file_.owner, first};
  const std::span<const uint8_t> view = *owner;
  return {std::move(owner), view};
}

}  // namespace

Model read_model(const std::string& path) {
  InputFile file(path);
  if (file.left() > kMostBytes) {
    throw DataError("onnx",
                    path,
                    ": has ",
                    file.left(),
                    " bytes, more than protobuf allows: save it with external data");
  }
  auto owner = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(file.left()));
  if (file.read(*owner) < owner->size())
    throw DataError("onnx", path, ": shrank while it was read");
  const std::span<const uint8_t> view = *owner;
  return Reader(path, system::folder_of(path), {std::move(owner), view}).model();
}

Model parse_model(std::span<const uint8_t> bytes, const std::string& path) {
  auto owner = std::make_shared<std::vector<uint8_t>>(bytes.begin(), bytes.end());
  const std::span<const uint8_t> view = *owner;
  return Reader(path, "", {std::move(owner), view}).model();
}

StoredTensor parse_tensor(std::span<const uint8_t> bytes, const std::string& path) {
  auto owner = std::make_shared<std::vector<uint8_t>>(bytes.begin(), bytes.end());
  const std::span<const uint8_t> view = *owner;
  Reader reader(path, "", {std::move(owner), view});
  return reader.tensor(reader.root("the tensor"));
}

}  // namespace quantrain::onnx
