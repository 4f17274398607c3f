#include "layers/onnx/schema.hpp"

#include <algorithm>
#include <iterator>

namespace quantrain::onnx {
namespace {

struct TypeRow {
  ElementType type;
  std::string_view name;
  int bits;
};
constexpr TypeRow kTypes[] = {{ElementType::kUndefined, "undefined", 0},
                              {ElementType::kFloat, "float", 32},
                              {ElementType::kUint8, "uint8", 8},
                              {ElementType::kInt8, "int8", 8},
                              {ElementType::kUint16, "uint16", 16},
                              {ElementType::kInt16, "int16", 16},
                              {ElementType::kInt32, "int32", 32},
                              {ElementType::kInt64, "int64", 64},
                              {ElementType::kString, "string", 0},
                              {ElementType::kBool, "bool", 8},
                              {ElementType::kFloat16, "float16", 16},
                              {ElementType::kDouble, "double", 64},
                              {ElementType::kUint32, "uint32", 32},
                              {ElementType::kUint64, "uint64", 64},
                              {ElementType::kComplex64, "complex64", 0},
                              {ElementType::kComplex128, "complex128", 0},
                              {ElementType::kBfloat16, "bfloat16", 16},
                              {ElementType::kUint4, "uint4", 4},
                              {ElementType::kInt4, "int4", 4}};

const TypeRow* row_of(ElementType type) {
  const auto* const found = std::find_if(
      std::begin(kTypes), std::end(kTypes), [&](const TypeRow& row) { return row.type == type; });
  return found == std::end(kTypes) ? nullptr : found;
}

}  // namespace

std::string_view name_of(ElementType type) {
  const TypeRow* const row = row_of(type);
  return row == nullptr ? "unknown" : row->name;
}

int bits_of(ElementType type) {
  const TypeRow* const row = row_of(type);
  return row == nullptr ? 0 : row->bits;
}

}  // namespace quantrain::onnx
