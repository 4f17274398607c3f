#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/integer/program.hpp"
#include "quant/import/tflite/file.hpp"

// From the operations of a .tflite file to the steps of an integer program. products.cpp,
// pools.cpp, elementwise.cpp and moves.cpp have a function for each kind of operation.
namespace quantrain::tflite {

/// The operation has no integer form, or not with these types or numbers. The text follows the
/// operation's name, such as "with weights that are not constant". It is empty if the operation
/// only reads what a refused operation would give.
struct Refusal {
  std::string text;
};

/// Fused activations, by their numbers in the schema. RELU_0_TO_1 has none, because it is never
/// fused.
enum class Fused : int { kNone = 0, kRelu = 1, kReluN1To1 = 2, kRelu6 = 3, kRelu0To1 = -1 };

/// Extents of a tensor, with those of the batch.
using Dims = std::vector<int64_t>;

/// The padding of an image that a convolution takes over from a PAD before it.
struct MergedPad {
  int32_t source = 0;  ///< the tensor that PAD reads
  int64_t top = 0, bottom = 0, left = 0, right = 0;
};

/// Lowers the operations of a file one by one. The functions about inputs and outputs are about the
/// operation that is lowered at the moment. Each throws Refusal if the tensor is not of the kind
/// that it asks for.
class Lowering {
 public:
  Lowering(const File& file, std::string_view where, int64_t file_bytes);
  /// Throws: GraphError naming all operations that were refused, with their number; DataError.
  integer::Program run();

  const Operation& operation() const { return *operation_; }
  const Table& options() const { return operation_->options; }
  int64_t inputs() const { return operation_->inputs.size(); }
  /// Whether there is an input i that is not missing.
  bool has_input(int64_t i) const { return i < inputs() && operation_->inputs[i] >= 0; }
  int32_t input_index(int64_t i) const;
  const Tensor& input(int64_t i) const { return tensor(input_index(i)); }
  int32_t output_index() const { return operation_->outputs[0]; }
  const Tensor& output() const { return tensor(output_index()); }
  const Tensor& tensor(int32_t i) const { return file_.tensors[static_cast<size_t>(i)]; }

  /// Extents; all are positive, and there are at most kMostElements elements.
  Dims dims(const Tensor& tensor) const;
  Dims input_dims(int64_t i) const { return dims(input(i)); }
  Dims output_dims() const { return dims(output()); }
  /// The same, if the tensor is a batch of one image [1, H, W, C].
  Dims image_dims(const Tensor& tensor) const;
  /// Parameters of an int8 or uint8 tensor of activations.
  QParams params(const Tensor& tensor) const;
  QParams input_params(int64_t i) const { return params(input(i)); }
  QParams output_params() const { return params(output()); }
  /// Whether input and output have the same parameters.
  bool keeps_params() const { return input_params(0) == output_params(); }
  bool is_constant(int64_t i) const { return !input(i).data.empty(); }
  /// The numbers of a constant of type int32 or int64.
  std::vector<int64_t> constant(int64_t i) const;
  /// The stored codes of a constant of type int8 or uint8.
  std::vector<int32_t> constant_codes(int64_t i) const;
  /// The number of an axis of a tensor, from 0.
  int64_t axis(int64_t axis, const Dims& dims) const;
  /// The value of the program that holds input i.
  int value(int64_t i) { return value_of(input_index(i)); }
  int value_of(int32_t tensor);
  /// The activation in this field of the options.
  Fused fused(int field) const { return static_cast<Fused>(options().get<int8_t>(field, 0)); }
  /// Zero point and bounds of the output, after an activation.   docs/quantization.md (9)
  StoredOutput stored(Fused activation) const;

  /// Counts bytes that an operation is about to take, or steps of a loop. Throws DataError if they
  /// are many more than the bytes of the file.
  void spend(int64_t bytes);
  /// Adds a step that gives the operation's output.
  void emit(integer::Operation op, std::vector<int> inputs, std::vector<float> weight_scale = {});
  /// Adds a step that gives a value of the output's shape, from which another step computes the
  /// output.
  int emit_between(integer::Operation op, std::vector<int> inputs, const QParams& params);
  /// The output is the value of input 0, with another meaning of its elements' places.
  void emit_view();
  /// Adds a step that rescales a value by (8) and clamps it to y.
  void emit_rescaled(int value, const StoredOutput& y);
  /// The output is a value that exists already.
  void alias(int value) { ids_[static_cast<size_t>(output_index())] = value; }

  /// The padding that a PAD before this convolution left to it, if input 0 has one.
  std::optional<MergedPad> merged_pad() const;
  /// Leaves the padding to the convolution that is the only reader of the output, if there is one
  /// that can take it over.
  bool leave_to_convolution(const MergedPad& pad);
  /// Whether input 0 is an input of the network in floats. Then the output becomes the network's
  /// input, in codes.
  bool take_float_input();

  /// The weights of a constant, made once for each order of its elements.
  std::map<std::pair<int32_t, bool>, SharedArray<int8_t>> weights{};

 private:
  static constexpr int kUnknown = -1, kRefused = -2, kFloat = -3;
  struct Readers {
    int64_t count = 0;
    const Operation* last = nullptr;
  };

  int add_value(const std::string& name, const Shape& shape, const QParams& params);
  void add_step(integer::Operation op, std::vector<int> inputs, int output);
  void add_inputs();
  void add_outputs();
  void lower(const Operation& operation);
  void refuse(const std::string& what) { ++refused_[what]; }
  void check_refusals() const;

  const File& file_;
  std::string_view where_;
  int64_t budget_;
  const Operation* operation_ = nullptr;
  std::string_view type_;         ///< of the operation, for Origin
  std::vector<int> ids_;          ///< the value of each tensor, or a constant above
  std::vector<Readers> readers_;  ///< of each tensor
  std::map<int32_t, MergedPad> pads_;
  std::map<int32_t, size_t> float_inputs_;  ///< their positions among the network's inputs
  std::map<std::string, int64_t> refused_;
  integer::Program program_;
};

// One function for each kind. Some serve several.
void lower_conv2d(Lowering& l);
void lower_depthwise(Lowering& l);
void lower_fully_connected(Lowering& l);
void lower_average_pool(Lowering& l);
void lower_max_pool(Lowering& l);
void lower_mean(Lowering& l);
void lower_softmax(Lowering& l);
void lower_add(Lowering& l);
void lower_mul(Lowering& l);
void lower_concatenation(Lowering& l);
void lower_function(Lowering& l);
void lower_relu(Lowering& l);
void lower_quantize(Lowering& l);
void lower_dequantize(Lowering& l);
void lower_pad(Lowering& l);
void lower_reshape(Lowering& l);
void lower_transpose(Lowering& l);
void lower_strided_slice(Lowering& l);
void lower_resize(Lowering& l);

}  // namespace quantrain::tflite
