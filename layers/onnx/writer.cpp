#include "layers/onnx/writer.hpp"

#include <protozero/pbf_writer.hpp>
#include <string_view>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "layers/onnx/message.hpp"

namespace quantrain::onnx {
namespace {

using protozero::pbf_writer;

class Writer {
 public:
  explicit Writer(const std::string& where) : where_(where) {}

  void write(pbf_writer out, const Model& model) const {
    out.add_int64(field::Model::kIrVersion, model.ir_version);
    text(out, field::Model::kProducerName, model.producer);
    text(out, field::Model::kProducerVersion, model.producer_version);
    write(pbf_writer(out, field::Model::kGraph), model.graph);
    for (const OperatorSet& set : model.operator_sets) {
      pbf_writer to(out, field::Model::kOpsetImport);
      text(to, field::OperatorSet::kDomain, set.domain);
      to.add_int64(field::OperatorSet::kVersion, set.version);
    }
    for (const auto& [key, value] : model.metadata) {
      pbf_writer to(out, field::Model::kMetadata);
      text(to, field::StringEntry::kKey, key);
      text(to, field::StringEntry::kValue, value);
    }
  }

 private:
  // An empty text is the same as an absent one, except in lists.
  void text(pbf_writer& out, uint32_t field, const std::string& value) const {
    if (!value.empty()) entry(out, field, value);
  }
  void entry(pbf_writer& out, uint32_t field, const std::string& value) const {
    if (!is_utf8(value)) throw ExportError(where_, "the text \"", value, "\" is not UTF-8");
    out.add_string(field, value);
  }

  void write(pbf_writer out, const Graph& graph) const {
    for (const Node& node : graph.nodes) write(pbf_writer(out, field::Graph::kNode), node);
    text(out, field::Graph::kName, graph.name);
    for (const StoredTensor& tensor : graph.initializers)
      write(pbf_writer(out, field::Graph::kInitializer), tensor);
    for (const ValueInfo& info : graph.inputs) write(pbf_writer(out, field::Graph::kInput), info);
    for (const ValueInfo& info : graph.outputs) write(pbf_writer(out, field::Graph::kOutput), info);
  }

  void write(pbf_writer out, const Node& node) const {
    for (const std::string& name : node.inputs) entry(out, field::Node::kInput, name);
    for (const std::string& name : node.outputs) entry(out, field::Node::kOutput, name);
    text(out, field::Node::kName, node.name);
    text(out, field::Node::kOpType, node.op_type);
    for (const Attribute& attribute : node.attributes)
      write(pbf_writer(out, field::Node::kAttribute), attribute);
    text(out, field::Node::kDomain, node.domain);
  }

  void write(pbf_writer out, const Attribute& attribute) const {
    text(out, field::Attribute::kName, attribute.name);
    std::visit([&](const auto& value) { write_value(out, attribute, value); }, attribute.value);
  }
  void type(pbf_writer& out, AttributeType type) const {
    out.add_int32(field::Attribute::kType, static_cast<int32_t>(type));
  }
  void write_value(pbf_writer& out, const Attribute&, float value) const {
    out.add_float(field::Attribute::kFloat, value);
    type(out, AttributeType::kFloat);
  }
  void write_value(pbf_writer& out, const Attribute&, int64_t value) const {
    out.add_int64(field::Attribute::kInt, value);
    type(out, AttributeType::kInt);
  }
  void write_value(pbf_writer& out, const Attribute&, const std::string& value) const {
    entry(out, field::Attribute::kString, value);
    type(out, AttributeType::kString);
  }
  void write_value(pbf_writer& out, const Attribute&, const StoredTensor& value) const {
    write(pbf_writer(out, field::Attribute::kTensor), value);
    type(out, AttributeType::kTensor);
  }
  void write_value(pbf_writer& out, const Attribute&, const std::vector<float>& values) const {
    for (const float value : values) out.add_float(field::Attribute::kFloats, value);
    type(out, AttributeType::kFloats);
  }
  void write_value(pbf_writer& out, const Attribute&, const std::vector<int64_t>& values) const {
    for (const int64_t value : values) out.add_int64(field::Attribute::kInts, value);
    type(out, AttributeType::kInts);
  }
  void write_value(pbf_writer& out,
                   const Attribute&,
                   const std::vector<std::string>& values) const {
    for (const std::string& value : values) entry(out, field::Attribute::kStrings, value);
    type(out, AttributeType::kStrings);
  }
  void write_value(pbf_writer&, const Attribute& attribute, const OtherAttribute&) const {
    throw ExportError(where_, "the attribute \"", attribute.name, "\" cannot be written");
  }

  void write(pbf_writer out, const StoredTensor& tensor) const {
    out.add_packed_int64(field::Tensor::kDims, tensor.dims.begin(), tensor.dims.end());
    out.add_int32(field::Tensor::kDataType, static_cast<int32_t>(tensor.type));
    text(out, field::Tensor::kName, tensor.name);
    const std::span<const uint8_t> bytes = tensor.bytes.view;
    out.add_bytes(
        field::Tensor::kRawData, reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  void write(pbf_writer out, const ValueInfo& info) const {
    text(out, field::ValueInfo::kName, info.name);
    pbf_writer type(out, field::ValueInfo::kType);
    pbf_writer tensor(type, field::Type::kTensor);
    tensor.add_int32(field::TensorType::kElementType, static_cast<int32_t>(info.type));
    if (!info.has_shape) return;
    pbf_writer shape(tensor, field::TensorType::kShape);
    for (const Dimension& dimension : info.dims) {
      pbf_writer to(shape, field::TensorShape::kDim);
      if (dimension.value >= 0) to.add_int64(field::Dimension::kValue, dimension.value);
      if (dimension.value < 0) text(to, field::Dimension::kParam, dimension.name);
    }
  }

  const std::string& where_;
};

size_t tensor_bytes(const Graph& graph) {
  size_t bytes = 0;
  for (const StoredTensor& tensor : graph.initializers) bytes += tensor.bytes.view.size();
  return bytes;
}

void check_size(size_t bytes, const std::string& where) {
  if (bytes > static_cast<size_t>(kMostBytes))
    throw ExportError(where, "the file would have ", bytes, " bytes: protobuf allows 2 GiB");
}

}  // namespace

std::string model_bytes(const Model& model, const std::string& where) {
  check_size(tensor_bytes(model.graph), where);
  std::string bytes;
  Writer(where).write(pbf_writer(bytes), model);
  check_size(bytes.size(), where);
  return bytes;
}

void write_model(const std::string& path, const Model& model) {
  check_writable(path);
  write_file(path, model_bytes(model, path));
}

}  // namespace quantrain::onnx
