#include "layers/onnx/model.hpp"

#include <algorithm>

#include "framework/core/error.hpp"

namespace quantrain::onnx {
namespace {

template <class T>
T value_of(const Node& node, std::string_view name, T otherwise, const char* what) {
  const Attribute* const attribute = node.find(name);
  if (attribute == nullptr) return otherwise;
  if (const T* const value = std::get_if<T>(&attribute->value)) return *value;
  throw DataError("onnx", node.label(), ": the attribute \"", name, "\" is not ", what);
}

}  // namespace

int64_t StoredTensor::elements() const {
  int64_t n = 1;
  for (const int64_t extent : dims) n *= extent;
  return n;
}

const Attribute* Node::find(std::string_view attribute) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(), [&](const Attribute& a) {
    return a.name == attribute;
  });
  return found == attributes.end() ? nullptr : &*found;
}

int64_t Node::get(std::string_view attribute, int64_t otherwise) const {
  return value_of(*this, attribute, otherwise, "an integer");
}

float Node::get(std::string_view attribute, float otherwise) const {
  return value_of(*this, attribute, otherwise, "a number");
}

std::string Node::get(std::string_view attribute, const char* otherwise) const {
  return value_of(*this, attribute, std::string(otherwise), "a text");
}

std::vector<int64_t> Node::get(std::string_view attribute, std::vector<int64_t> otherwise) const {
  return value_of(*this, attribute, std::move(otherwise), "a list of integers");
}

std::vector<float> Node::get(std::string_view attribute, std::vector<float> otherwise) const {
  return value_of(*this, attribute, std::move(otherwise), "a list of numbers");
}

std::string Node::label() const {
  const std::string type = domain.empty() ? op_type : domain + "." + op_type;
  if (!name.empty()) return type + " " + name;
  const auto output = std::find_if(
      outputs.begin(), outputs.end(), [](const std::string& text) { return !text.empty(); });
  return output == outputs.end() ? type : type + " at " + *output;
}

int64_t Model::opset() const {
  int64_t version = 0;
  for (const OperatorSet& set : operator_sets) {
    if (set.domain.empty()) version = std::max(version, set.version);
  }
  return version;
}

}  // namespace quantrain::onnx
