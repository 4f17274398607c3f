#pragma once

#include <cstdint>
#include <string_view>

// The numbers of the published schema: github.com/onnx/onnx, onnx/onnx.proto (ONNX 1.17). Only the
// fields that are read or written; all others are skipped.
namespace quantrain::onnx {

/// TensorProto.DataType.
enum class ElementType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kUint4 = 21,
  kInt4 = 22,
};

/// The name of a type in messages, such as "float16".
std::string_view name_of(ElementType type);
/// Bits of one element; 0 for a type that cannot be read (strings, complex numbers, others).
int bits_of(ElementType type);

/// AttributeProto.AttributeType.
enum class AttributeType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
};

/// Versions that are read: of the format, and of the default set of operators.
inline constexpr int64_t kLeastIrVersion = 3;
inline constexpr int64_t kMostIrVersion = 13;
inline constexpr int64_t kLeastOpset = 7;
inline constexpr int64_t kMostOpset = 25;

/// The largest file that protobuf allows.
inline constexpr int64_t kMostBytes = (int64_t{1} << 31) - 1;

namespace field {

struct Model {
  enum : uint32_t {
    kIrVersion = 1,
    kProducerName = 2,
    kProducerVersion = 3,
    kGraph = 7,
    kOpsetImport = 8,
    kMetadata = 14,
  };
};
struct OperatorSet {
  enum : uint32_t { kDomain = 1, kVersion = 2 };
};
struct Graph {
  enum : uint32_t {
    kNode = 1,
    kName = 2,
    kInitializer = 5,
    kInput = 11,
    kOutput = 12,
    kSparseInitializer = 15,
  };
};
struct Node {
  enum : uint32_t {
    kInput = 1,
    kOutput = 2,
    kName = 3,
    kOpType = 4,
    kAttribute = 5,
    kDomain = 7,
  };
};
struct Attribute {
  enum : uint32_t {
    kName = 1,
    kFloat = 2,
    kInt = 3,
    kString = 4,
    kTensor = 5,
    kFloats = 7,
    kInts = 8,
    kStrings = 9,
    kType = 20,
    kReference = 21,
  };
};
struct Tensor {
  enum : uint32_t {
    kDims = 1,
    kDataType = 2,
    kSegment = 3,
    kFloatData = 4,
    kInt32Data = 5,
    kStringData = 6,
    kInt64Data = 7,
    kName = 8,
    kRawData = 9,
    kDoubleData = 10,
    kUint64Data = 11,
    kExternalData = 13,
    kDataLocation = 14,
  };
};
struct StringEntry {
  enum : uint32_t { kKey = 1, kValue = 2 };
};
struct ValueInfo {
  enum : uint32_t { kName = 1, kType = 2 };
};
struct Type {
  enum : uint32_t { kTensor = 1 };
};
struct TensorType {
  enum : uint32_t { kElementType = 1, kShape = 2 };
};
struct TensorShape {
  enum : uint32_t { kDim = 1 };
};
struct Dimension {
  enum : uint32_t { kValue = 1, kParam = 2 };
};

}  // namespace field
}  // namespace quantrain::onnx
