#include "quant/import/tflite/file.hpp"

#include <algorithm>
#include <iterator>

#include "framework/core/error.hpp"

namespace quantrain::tflite {
namespace {

// Numbers of the fields in the schema.
namespace model {
constexpr int kOperatorCodes = 1, kSubgraphs = 2, kBuffers = 4;
}
namespace code {
constexpr int kByte = 0, kCustom = 1, kNumber = 3;
}
namespace graph {
constexpr int kTensors = 0, kInputs = 1, kOutputs = 2, kOperators = 3;
}
namespace tensor {
constexpr int kShape = 0, kType = 1, kBuffer = 2, kName = 3, kQuantization = 4, kVariable = 5,
              kSparsity = 6;
}
namespace quantization {
constexpr int kScale = 2, kZeroPoint = 3, kAxis = 6;
}
namespace buffer {
constexpr int kData = 0, kOffset = 1, kSize = 2;
}
namespace op {
constexpr int kCode = 0, kInputs = 1, kOutputs = 2, kOptions = 4;
}

constexpr int kCustom = 32;
constexpr const char* kNames[] = {"ADD",
                                  "AVERAGE_POOL_2D",
                                  "CONCATENATION",
                                  "CONV_2D",
                                  "DEPTHWISE_CONV_2D",
                                  "DEPTH_TO_SPACE",
                                  "DEQUANTIZE",
                                  "EMBEDDING_LOOKUP",
                                  "FLOOR",
                                  "FULLY_CONNECTED",
                                  "HASHTABLE_LOOKUP",
                                  "L2_NORMALIZATION",
                                  "L2_POOL_2D",
                                  "LOCAL_RESPONSE_NORMALIZATION",
                                  "LOGISTIC",
                                  "LSH_PROJECTION",
                                  "LSTM",
                                  "MAX_POOL_2D",
                                  "MUL",
                                  "RELU",
                                  "RELU_N1_TO_1",
                                  "RELU6",
                                  "RESHAPE",
                                  "RESIZE_BILINEAR",
                                  "RNN",
                                  "SOFTMAX",
                                  "SPACE_TO_DEPTH",
                                  "SVDF",
                                  "TANH",
                                  "CONCAT_EMBEDDINGS",
                                  "SKIP_GRAM",
                                  "CALL",
                                  "CUSTOM",
                                  "EMBEDDING_LOOKUP_SPARSE",
                                  "PAD",
                                  "UNIDIRECTIONAL_SEQUENCE_RNN",
                                  "GATHER",
                                  "BATCH_TO_SPACE_ND",
                                  "SPACE_TO_BATCH_ND",
                                  "TRANSPOSE",
                                  "MEAN",
                                  "SUB",
                                  "DIV",
                                  "SQUEEZE",
                                  "UNIDIRECTIONAL_SEQUENCE_LSTM",
                                  "STRIDED_SLICE",
                                  "BIDIRECTIONAL_SEQUENCE_RNN",
                                  "EXP",
                                  "TOPK_V2",
                                  "SPLIT",
                                  "LOG_SOFTMAX",
                                  "DELEGATE",
                                  "BIDIRECTIONAL_SEQUENCE_LSTM",
                                  "CAST",
                                  "PRELU",
                                  "MAXIMUM",
                                  "ARG_MAX",
                                  "MINIMUM",
                                  "LESS",
                                  "NEG",
                                  "PADV2",
                                  "GREATER",
                                  "GREATER_EQUAL",
                                  "LESS_EQUAL",
                                  "SELECT",
                                  "SLICE",
                                  "SIN",
                                  "TRANSPOSE_CONV",
                                  "SPARSE_TO_DENSE",
                                  "TILE",
                                  "EXPAND_DIMS",
                                  "EQUAL",
                                  "NOT_EQUAL",
                                  "LOG",
                                  "SUM",
                                  "SQRT",
                                  "RSQRT",
                                  "SHAPE",
                                  "POW",
                                  "ARG_MIN",
                                  "FAKE_QUANT",
                                  "REDUCE_PROD",
                                  "REDUCE_MAX",
                                  "PACK",
                                  "LOGICAL_OR",
                                  "ONE_HOT",
                                  "LOGICAL_AND",
                                  "LOGICAL_NOT",
                                  "UNPACK",
                                  "REDUCE_MIN",
                                  "FLOOR_DIV",
                                  "REDUCE_ANY",
                                  "SQUARE",
                                  "ZEROS_LIKE",
                                  "FILL",
                                  "FLOOR_MOD",
                                  "RANGE",
                                  "RESIZE_NEAREST_NEIGHBOR",
                                  "LEAKY_RELU",
                                  "SQUARED_DIFFERENCE",
                                  "MIRROR_PAD",
                                  "ABS",
                                  "SPLIT_V",
                                  "UNIQUE",
                                  "CEIL",
                                  "REVERSE_V2",
                                  "ADD_N",
                                  "GATHER_ND",
                                  "COS",
                                  "WHERE",
                                  "RANK",
                                  "ELU",
                                  "REVERSE_SEQUENCE",
                                  "MATRIX_DIAG",
                                  "QUANTIZE",
                                  "MATRIX_SET_DIAG",
                                  "ROUND",
                                  "HARD_SWISH",
                                  "IF",
                                  "WHILE",
                                  "NON_MAX_SUPPRESSION_V4",
                                  "NON_MAX_SUPPRESSION_V5",
                                  "SCATTER_ND",
                                  "SELECT_V2",
                                  "DENSIFY",
                                  "SEGMENT_SUM",
                                  "BATCH_MATMUL",
                                  "PLACEHOLDER_FOR_GREATER_OP_CODES",
                                  "CUMSUM",
                                  "CALL_ONCE",
                                  "BROADCAST_TO",
                                  "RFFT2D",
                                  "CONV_3D",
                                  "IMAG",
                                  "REAL",
                                  "COMPLEX_ABS",
                                  "HASHTABLE",
                                  "HASHTABLE_FIND",
                                  "HASHTABLE_IMPORT",
                                  "HASHTABLE_SIZE",
                                  "REDUCE_ALL",
                                  "CONV_3D_TRANSPOSE",
                                  "VAR_HANDLE",
                                  "READ_VARIABLE",
                                  "ASSIGN_VARIABLE",
                                  "BROADCAST_ARGS",
                                  "RANDOM_STANDARD_NORMAL",
                                  "BUCKETIZE",
                                  "RANDOM_UNIFORM",
                                  "MULTINOMIAL",
                                  "GELU",
                                  "DYNAMIC_UPDATE_SLICE",
                                  "RELU_0_TO_1"};
static_assert(std::size(kNames) == 153);

constexpr const char* kTypes[] = {"float32",
                                  "float16",
                                  "int32",
                                  "uint8",
                                  "int64",
                                  "string",
                                  "bool",
                                  "int16",
                                  "complex64",
                                  "int8",
                                  "float64",
                                  "complex128",
                                  "uint64",
                                  "resource",
                                  "variant",
                                  "uint32",
                                  "uint16",
                                  "int4",
                                  "bfloat16"};
static_assert(std::size(kTypes) == 19);

/// At most `most` printable characters, because names come from the file.
std::string printable(std::string_view text, size_t most) {
  std::string result(text.substr(0, most));
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  return result;
}

std::string operation_name(int32_t number, Table code) {
  if (number == kCustom) return "CUSTOM \"" + printable(code.text(code::kCustom), 60) + '"';
  if (number >= 0 && number < static_cast<int32_t>(std::size(kNames)))
    return kNames[static_cast<size_t>(number)];
  return "operation " + std::to_string(number);
}

/// The bytes of a buffer: in the flatbuffer, or, in files of more than 2 GiB, after it.
Vector<uint8_t> data_of(const Flatbuffer& file, Table buffer) {
  const auto offset = buffer.get<uint64_t>(buffer::kOffset, 0);
  if (offset <= 1) return buffer.vector<uint8_t>(buffer::kData);
  const auto bytes = buffer.get<uint64_t>(buffer::kSize, 0);
  const auto limit = static_cast<uint64_t>(file.size());
  if (offset > limit || bytes > limit - offset)
    throw DataError(file.where(), "is damaged: a buffer lies beyond the end of the file");
  const auto size = static_cast<int64_t>(bytes);
  return {file.at(static_cast<int64_t>(offset), size), size};
}

Tensor tensor_from(const Flatbuffer& file, Table model, Table table) {
  Tensor tensor;
  // Converters join the names of all operations that they fused by semicolons.
  const std::string_view name = table.text(tensor::kName).substr(0, 200);
  tensor.name = printable(name.substr(0, name.find(';')), 200);
  tensor.shape = table.vector<int32_t>(tensor::kShape);
  tensor.type = static_cast<Type>(table.get<int8_t>(tensor::kType, 0));
  tensor.data =
      data_of(file, model.table(model::kBuffers, table.get<uint32_t>(tensor::kBuffer, 0)));
  tensor.sparse = bool(table.table(tensor::kSparsity));
  tensor.variable = table.get<uint8_t>(tensor::kVariable, 0) != 0;
  const Table quantization = table.table(tensor::kQuantization);
  tensor.scale = quantization.vector<float>(quantization::kScale);
  tensor.zero_point = quantization.vector<int64_t>(quantization::kZeroPoint);
  tensor.axis = quantization.get<int32_t>(quantization::kAxis, 0);
  return tensor;
}

void check_tensors(const Flatbuffer& file,
                   const Vector<int32_t>& list,
                   int64_t count,
                   bool optional) {
  for (int64_t i = 0; i < list.size(); ++i) {
    if (list[i] < (optional ? -1 : 0) || list[i] >= count)
      throw DataError(file.where(), "is damaged: tensor ", list[i], " does not exist");
  }
}

}  // namespace

std::string name_of(Type type) {
  const int number = static_cast<int>(type);
  if (number >= 0 && number < static_cast<int>(std::size(kTypes)))
    return kTypes[static_cast<size_t>(number)];
  return "type " + std::to_string(number);
}

File read_file(const Flatbuffer& file) {
  const Table model = file.root();
  if (model.tables(model::kSubgraphs) == 0) throw DataError(file.where(), "has no graph");
  const Table graph = model.table(model::kSubgraphs, 0);
  const int64_t tensors = graph.tables(graph::kTensors);
  const int64_t operations = graph.tables(graph::kOperators);
  for (const int64_t parts : {tensors,
                              operations,
                              graph.vector<int32_t>(graph::kInputs).size(),
                              graph.vector<int32_t>(graph::kOutputs).size()}) {
    if (parts > kMostParts)
      throw DataError(
          file.where(), "has ", parts, " tensors or operations, expected at most ", kMostParts);
  }
  File result;
  for (int64_t i = 0; i < tensors; ++i)
    result.tensors.push_back(tensor_from(file, model, graph.table(graph::kTensors, i)));
  for (int64_t i = 0; i < operations; ++i) {
    const Table table = graph.table(graph::kOperators, i);
    const Table code = model.table(model::kOperatorCodes, table.get<uint32_t>(op::kCode, 0));
    // Old files have the number in a byte.
    const int32_t number =
        std::max(code.get<int32_t>(code::kNumber, 0), int32_t{code.get<int8_t>(code::kByte, 0)});
    Operation operation;
    operation.kind = static_cast<Kind>(number);
    operation.name = operation_name(number, code);
    operation.inputs = table.vector<int32_t>(op::kInputs);
    operation.outputs = table.vector<int32_t>(op::kOutputs);
    operation.options = table.table(op::kOptions);
    if (std::max(operation.inputs.size(), operation.outputs.size()) > kMostParts)
      throw DataError(file.where(), "an operation has more than ", kMostParts, " inputs");
    check_tensors(file, operation.inputs, tensors, true);
    check_tensors(file, operation.outputs, tensors, false);
    result.operations.push_back(std::move(operation));
  }
  result.inputs = graph.vector<int32_t>(graph::kInputs);
  result.outputs = graph.vector<int32_t>(graph::kOutputs);
  check_tensors(file, result.inputs, tensors, false);
  check_tensors(file, result.outputs, tensors, false);
  return result;
}

}  // namespace quantrain::tflite
