#include "layers/onnx/graph_builder.hpp"

#include <memory>

namespace quantrain::onnx {
namespace {

/// Constants of at most this many bytes are shared.
constexpr size_t kSmall = 64;

/// An input or output: the number of samples is open.
ValueInfo value_info(const std::string& name,
                     ElementType type,
                     const std::vector<int64_t>& sample) {
  ValueInfo info{.name = name, .type = type, .has_shape = true, .dims = {{-1, "N"}}};
  for (const int64_t extent : sample) info.dims.push_back({extent, {}});
  return info;
}

}  // namespace

StoredTensor make_tensor(std::string name,
                         ElementType type,
                         std::vector<int64_t> dims,
                         std::vector<uint8_t> bytes) {
  auto owner = std::make_shared<std::vector<uint8_t>>(std::move(bytes));
  const std::span<const uint8_t> view = *owner;
  return {std::move(name), type, std::move(dims), {std::move(owner), view}};
}

std::string GraphBuilder::node(std::string_view op_type,
                               std::vector<std::string> inputs,
                               std::vector<Attribute> attributes,
                               std::string output) {
  const std::string name = take_name(scope_ + "/" + std::string(op_type));
  if (output.empty()) output = name;
  graph_.nodes.push_back({.name = name,
                          .op_type = std::string(op_type),
                          .domain = {},
                          .inputs = std::move(inputs),
                          .outputs = {output},
                          .attributes = std::move(attributes)});
  return output;
}

std::string GraphBuilder::constant(ElementType type,
                                   const std::vector<int64_t>& dims,
                                   std::vector<uint8_t> bytes,
                                   std::string_view what) {
  std::string content;
  if (bytes.size() <= kSmall) {
    content = std::to_string(static_cast<int>(type)) + ":";
    for (const int64_t extent : dims) content += std::to_string(extent) + ",";
    content.append(bytes.begin(), bytes.end());
    const auto found = shared_.find(content);
    if (found != shared_.end()) return found->second;
  }
  const std::string name = take_name(scope_ + "/" + std::string(what));
  if (!content.empty()) shared_[content] = name;
  graph_.initializers.push_back(make_tensor(name, type, dims, std::move(bytes)));
  return name;
}

void GraphBuilder::input(const std::string& name,
                         ElementType type,
                         const std::vector<int64_t>& sample) {
  graph_.inputs.push_back(value_info(name, type, sample));
}

void GraphBuilder::output(const std::string& name,
                          ElementType type,
                          const std::vector<int64_t>& sample) {
  graph_.outputs.push_back(value_info(name, type, sample));
}

std::string GraphBuilder::take_name(const std::string& name) {
  std::string taken = name;
  while (!names_.insert(taken).second) taken = name + "_" + std::to_string(++repeats_[name]);
  return taken;
}

}  // namespace quantrain::onnx
