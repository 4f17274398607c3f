#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quant/import/tflite/flatbuffer.hpp"

// The main graph of a .tflite file as plain data.
// Source: tensorflow/compiler/mlir/lite/schema/schema.fbs, whose numbers stand in file.cpp.
namespace quantrain::tflite {

/// Types of elements, by their numbers in the schema. There are others.
enum class Type : int {
  kFloat32 = 0,
  kInt32 = 2,
  kUint8 = 3,
  kInt64 = 4,
  kInt8 = 9,
  kInt4 = 17,
};
/// "int8", or "type 42" if the number is unknown.
std::string name_of(Type type);

struct Tensor {
  std::string name;  ///< printable ASCII, at most 200 characters
  Vector<int32_t> shape;
  Type type = Type::kFloat32;
  Vector<uint8_t> data;  ///< of a constant; else empty
  /// real = scale (q - zero_point), one for all or one for each index along `axis`.
  Vector<float> scale;
  Vector<int64_t> zero_point;
  int32_t axis = 0;
  bool sparse = false;
  bool variable = false;
};

/// Operations that have an integer form here, by their numbers in the schema.
enum class Kind : int {
  kAdd = 0,
  kAveragePool2d = 1,
  kConcatenation = 2,
  kConv2d = 3,
  kDepthwiseConv2d = 4,
  kDequantize = 6,
  kFullyConnected = 9,
  kLogistic = 14,
  kMaxPool2d = 17,
  kMul = 18,
  kRelu = 19,
  kReluN1To1 = 20,
  kRelu6 = 21,
  kReshape = 22,
  kSoftmax = 25,
  kTanh = 28,
  kPad = 34,
  kTranspose = 39,
  kMean = 40,
  kSqueeze = 43,
  kStridedSlice = 45,
  kPadV2 = 60,
  kExpandDims = 70,
  kResizeNearestNeighbor = 97,
  kLeakyRelu = 98,
  kQuantize = 114,
  kHardSwish = 117,
  kRelu0To1 = 152,
};

struct Operation {
  Kind kind = Kind::kAdd;
  std::string name;                 ///< such as "CONV_2D", or "CUSTOM \"name\""
  Vector<int32_t> inputs, outputs;  ///< positions in File::tensors; an input of -1 is missing
  Table options;
};

struct File {
  std::vector<Tensor> tensors;
  std::vector<Operation> operations;
  Vector<int32_t> inputs, outputs;
};

/// Most tensors and most operations of a file.
inline constexpr int64_t kMostParts = 1 << 14;

/// Throws: DataError if the file is damaged, has no graph, or has more than kMostParts tensors or
/// operations, or if a tensor that an operation or the graph names does not exist.
File read_file(const Flatbuffer& file);

}  // namespace quantrain::tflite
