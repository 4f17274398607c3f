#include "quant/import/tflite/lowering.hpp"

#include <algorithm>

#include "framework/core/rounding.hpp"
#include "framework/integer/sizes.hpp"
#include "quant/import/tflite/windows.hpp"

namespace quantrain::tflite {
namespace {

// A file may ask for this many bytes, and this many for each byte of its own.
constexpr int64_t kFreeBytes = int64_t{1} << 22;
constexpr int64_t kBytesPerByte = 16;
// In messages, at most this many kinds of refusals are listed.
constexpr size_t kMostKinds = 20;

struct Rule {
  Kind kind;
  void (*lower)(Lowering&);
  std::string_view type;  ///< the operation's type in Origin::about
};
constexpr Rule kRules[] = {
    {Kind::kAdd, lower_add, "add"},
    {Kind::kAveragePool2d, lower_average_pool, "avg_pool2d"},
    {Kind::kConcatenation, lower_concatenation, "concat"},
    {Kind::kConv2d, lower_conv2d, "conv2d"},
    {Kind::kDepthwiseConv2d, lower_depthwise, "conv2d"},
    {Kind::kDequantize, lower_dequantize, ""},
    {Kind::kFullyConnected, lower_fully_connected, "linear"},
    {Kind::kLogistic, lower_function, "sigmoid"},
    {Kind::kMaxPool2d, lower_max_pool, "max_pool2d"},
    {Kind::kMul, lower_mul, "mul"},
    {Kind::kRelu, lower_relu, "relu"},
    {Kind::kReluN1To1, lower_relu, "clamp"},
    {Kind::kRelu6, lower_relu, "relu6"},
    {Kind::kRelu0To1, lower_relu, "clamp"},
    {Kind::kReshape, lower_reshape, "reshape"},
    {Kind::kSoftmax, lower_softmax, "softmax"},
    {Kind::kTanh, lower_function, "tanh"},
    {Kind::kPad, lower_pad, "pad"},
    {Kind::kPadV2, lower_pad, "pad"},
    {Kind::kTranspose, lower_transpose, "transpose"},
    {Kind::kMean, lower_mean, "mean"},
    {Kind::kSqueeze, lower_reshape, "reshape"},
    {Kind::kExpandDims, lower_reshape, "reshape"},
    {Kind::kStridedSlice, lower_strided_slice, "slice"},
    {Kind::kResizeNearestNeighbor, lower_resize, "upsample"},
    {Kind::kLeakyRelu, lower_function, "leaky_relu"},
    {Kind::kQuantize, lower_quantize, "rescale"},
    {Kind::kHardSwish, lower_function, "hard_swish"},
};

/// The text of an error without its "[where] ".
std::string without_where(const Error& error) {
  const std::string text = error.what();
  const size_t end = text.find("] ");
  return end == std::string::npos ? text : text.substr(end + 2);
}

std::string text_of(const Vector<int32_t>& shape) {
  std::string text;
  for (int64_t i = 0; i < std::min<int64_t>(shape.size(), 9); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return '[' + text + ']';
}

/// The shape of one sample: without the batch, which is the first extent if it is 1.
Shape sample_shape(const Dims& dims) {
  const std::span<const int64_t> all(dims);
  return Shape(dims.size() > 1 && dims[0] == 1 ? all.subspan(1) : all);
}

}  // namespace

Lowering::Lowering(const File& file, std::string_view where, int64_t file_bytes)
    : file_(file),
      where_(where),
      budget_(kFreeBytes + kBytesPerByte * file_bytes),
      ids_(file.tensors.size(), kUnknown),
      readers_(file.tensors.size()) {
  for (const tflite::Operation& operation : file.operations) {
    for (int64_t i = 0; i < operation.inputs.size(); ++i) {
      if (operation.inputs[i] < 0) continue;
      Readers& readers = readers_[static_cast<size_t>(operation.inputs[i])];
      ++readers.count;
      readers.last = &operation;
    }
  }
  for (int64_t i = 0; i < file.outputs.size(); ++i)
    ++readers_[static_cast<size_t>(file.outputs[i])].count;
}

integer::Program Lowering::run() {
  add_inputs();
  for (const tflite::Operation& operation : file_.operations) lower(operation);
  add_outputs();
  check_refusals();
  validate(program_);
  return std::move(program_);
}

void Lowering::add_inputs() {
  for (int64_t i = 0; i < file_.inputs.size(); ++i) {
    const int32_t index = file_.inputs[i];
    const Tensor& t = tensor(index);
    int& id = ids_[static_cast<size_t>(index)];
    if (id != kUnknown || !t.data.empty())
      throw DataError(where_, "is damaged: input ", t.name, " is also a constant or another input");
    id = kRefused;
    try {
      if (t.type == Type::kFloat32) {
        float_inputs_[index] = program_.inputs.size();
        id = kFloat;
      } else {
        id = add_value(t.name, sample_shape(dims(t)), params(t));
      }
    } catch (const Refusal& refusal) {
      refuse("an input " + refusal.text);
    }
    program_.inputs.push_back(id);
  }
}

void Lowering::add_outputs() {
  for (const auto& [index, position] : float_inputs_) {
    if (ids_[static_cast<size_t>(index)] == kFloat)
      refuse("an input of float32 that no QUANTIZE reads");
  }
  for (int64_t i = 0; i < file_.outputs.size(); ++i) {
    const int id = ids_[static_cast<size_t>(file_.outputs[i])];
    if (id == kUnknown) refuse("an output that no operation computes");
    program_.outputs.push_back(id);
  }
}

void Lowering::check_refusals() const {
  if (refused_.empty()) return;
  std::string list;
  size_t listed = 0;
  for (const auto& [what, count] : refused_) {
    if (listed == kMostKinds) break;
    list += (listed++ > 0 ? "; " : "") + std::to_string(count) + " x " + what;
  }
  if (refused_.size() > listed)
    list += "; and " + std::to_string(refused_.size() - listed) + " other kinds";
  throw GraphError(where_,
                   "has parts without an integer form: ",
                   list,
                   ". Convert the network with full integer quantization (int8 weights and "
                   "activations), and leave these operations to the program before or after it");
}

void Lowering::lower(const tflite::Operation& operation) {
  operation_ = &operation;
  for (int64_t i = 0; i < operation.outputs.size(); ++i) {
    const auto output = static_cast<size_t>(operation.outputs[i]);
    if (ids_[output] != kUnknown || pads_.count(operation.outputs[i]) > 0)
      throw DataError(
          where_, "is damaged: ", tensor(operation.outputs[i]).name, " is written twice");
  }
  const auto rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& r) {
    return r.kind == operation.kind;
  });
  try {
    if (rule == std::end(kRules)) {
      refuse(operation.name);
      throw Refusal{};
    }
    if (operation.inputs.empty() || operation.outputs.size() != 1)
      throw Refusal{"with " + std::to_string(operation.inputs.size()) + " inputs and " +
                    std::to_string(operation.outputs.size()) + " outputs"};
    type_ = rule->type;
    return rule->lower(*this);
  } catch (const Refusal& refusal) {
    if (!refusal.text.empty()) refuse(operation.name + ' ' + refusal.text);
  } catch (const DataError&) {
    throw;
  } catch (const Error& error) {
    refuse(operation.name + ": " + without_where(error));
  }
  for (int64_t i = 0; i < operation.outputs.size(); ++i)
    ids_[static_cast<size_t>(operation.outputs[i])] = kRefused;
}

int32_t Lowering::input_index(int64_t i) const {
  if (!has_input(i)) throw Refusal{"without input " + std::to_string(i)};
  return operation_->inputs[i];
}

Dims Lowering::dims(const Tensor& t) const {
  bool fits = t.shape.size() <= Shape::kMaxRank;
  Dims dims;
  int64_t elements = 1;
  for (int64_t i = 0; fits && i < t.shape.size(); ++i) {
    const int64_t extent = t.shape[i];
    fits = extent >= 1 && extent <= integer::kMostElements / elements;
    elements *= extent;
    dims.push_back(extent);
  }
  if (!fits) throw Refusal{"of shape " + text_of(t.shape)};
  return dims;
}

Dims Lowering::image_dims(const Tensor& t) const {
  const Dims result = dims(t);
  if (result.size() != 4 || result[0] != 1)
    throw Refusal{"of shape " + text_of(t.shape) + ", expected [1, height, width, channels]"};
  return result;
}

QParams Lowering::params(const Tensor& t) const {
  if (t.type != Type::kInt8 && t.type != Type::kUint8) throw Refusal{"of " + name_of(t.type)};
  if (t.scale.size() != 1 || t.zero_point.size() > 1) throw Refusal{"without one scale"};
  const int64_t zero_point = t.zero_point.empty() ? 0 : t.zero_point[0];
  const QType type{.bits = 8, .is_signed = t.type == Type::kInt8};
  if (zero_point < type.qmin() || zero_point > type.qmax())
    throw Refusal{"with zero point " + std::to_string(zero_point)};
  const QParams params{type, -1, {t.scale[0]}, {static_cast<int32_t>(zero_point)}};
  check_activation(params, t.name);
  return params;
}

std::vector<int64_t> Lowering::constant(int64_t i) const {
  const Tensor& t = input(i);
  const auto read = [&](auto type) {
    constexpr auto kSize = static_cast<int64_t>(sizeof type);
    const Vector<decltype(type)> numbers(t.data.bytes().data(), t.data.size() / kSize);
    // Lists are as long as a tensor has axes.
    if (numbers.size() > 64 || t.data.size() % kSize != 0)
      throw Refusal{"with a list of " + std::to_string(t.data.size()) + " bytes"};
    std::vector<int64_t> result;
    for (int64_t k = 0; k < numbers.size(); ++k) result.push_back(numbers[k]);
    return result;
  };
  if (t.data.empty()) throw Refusal{"with sizes or axes that are not constant"};
  if (t.type == Type::kInt32) return read(int32_t{});
  if (t.type == Type::kInt64) return read(int64_t{});
  throw Refusal{"with a list of " + name_of(t.type)};
}

std::vector<int32_t> Lowering::constant_codes(int64_t i) const {
  const Tensor& t = input(i);
  const int32_t offset = stored_offset(params(t).type);
  std::vector<int32_t> codes;
  for (int64_t k = 0; k < t.data.size(); ++k)
    codes.push_back(offset == 0 ? t.data[k] : int32_t{static_cast<int8_t>(t.data[k])} + offset);
  return codes;
}

int64_t Lowering::axis(int64_t axis, const Dims& dims) const {
  const auto rank = static_cast<int64_t>(dims.size());
  if (axis < -rank || axis >= rank)
    throw Refusal{"along axis " + std::to_string(axis) + " of " + std::to_string(rank)};
  return axis < 0 ? axis + rank : axis;
}

int Lowering::value_of(int32_t index) {
  const int id = ids_[static_cast<size_t>(index)];
  if (id >= 0) return id;
  if (id == kRefused) throw Refusal{};
  const Tensor& t = tensor(index);
  if (!t.data.empty()) throw Refusal{"of a constant"};
  if (t.variable) throw Refusal{"of a variable"};
  throw DataError(where_, "is damaged: ", t.name, " is read before it is computed");
}

StoredOutput Lowering::stored(Fused activation) const {
  const DefaultRounding rounding;
  const QParams y = output_params();
  StoredOutput result = stored_output(y, Activation::kNone);
  const auto code = [&](float value) {
    return quantize(value, y.scale[0], result.zero_point, 0, 255);
  };
  switch (activation) {
    case Fused::kNone: break;
    case Fused::kRelu: result.lo = result.zero_point; break;
    case Fused::kReluN1To1: result = {result.zero_point, code(-1.0f), code(1.0f)}; break;
    case Fused::kRelu6: result = {result.zero_point, result.zero_point, code(kRelu6Bound)}; break;
    case Fused::kRelu0To1: result = {result.zero_point, result.zero_point, code(1.0f)}; break;
    default: throw Refusal{"with fused activation " + std::to_string(static_cast<int>(activation))};
  }
  return result;
}

void Lowering::spend(int64_t bytes) {
  if (bytes <= budget_) {
    budget_ -= bytes;
    return;
  }
  throw DataError(where_,
                  "asks for many times more memory than it has bytes, first for ",
                  output().name,
                  ": sizes in it are wrong, or far too large");
}

int Lowering::add_value(const std::string& name, const Shape& shape, const QParams& params) {
  program_.values.push_back({.name = name, .shape = shape, .params = params});
  return static_cast<int>(program_.values.size()) - 1;
}

void Lowering::add_step(integer::Operation op, std::vector<int> inputs, int output) {
  integer::Step step{.operation = std::move(op), .inputs = std::move(inputs), .output = output};
  if (!type_.empty()) step.origin.about["operation"] = type_;
  program_.steps.push_back(std::move(step));
}

void Lowering::emit(integer::Operation op,
                    std::vector<int> inputs,
                    std::vector<float> weight_scale) {
  const Dims y = output_dims();
  const QParams y_params = output_params();
  validate(op, output().name);
  if (elements_of(y) != output_size(op))
    throw DataError(where_,
                    "is damaged: ",
                    operation_->name,
                    " gives ",
                    output_size(op),
                    " elements, but ",
                    output().name,
                    " has shape ",
                    text_of(output().shape));
  spend(size_bytes(op) + 64 * static_cast<int64_t>(inputs.size()));
  const int id = add_value(output().name, sample_shape(y), y_params);
  add_step(std::move(op), std::move(inputs), id);
  program_.steps.back().origin.weight_scale = std::move(weight_scale);
  alias(id);
}

int Lowering::emit_between(integer::Operation op, std::vector<int> inputs, const QParams& params) {
  validate(op, output().name);
  spend(size_bytes(op));
  const Dims y = output_dims();
  if (elements_of(y) != output_size(op)) throw Refusal{"of shape " + text_of(output().shape)};
  const int id = add_value(output().name + " before its activation", sample_shape(y), params);
  add_step(std::move(op), std::move(inputs), id);
  return id;
}

void Lowering::emit_view() {
  const Dims x = input_dims(0);
  if (!keeps_params()) throw Refusal{"that changes the scale or zero point"};
  emit(integer::View{elements_of(x)}, {value(0)});
}

void Lowering::emit_rescaled(int value, const StoredOutput& y) {
  const QParams x = *program_.value(value).params;
  const QParams y_params = output_params();
  const Multiplier multiplier = rescale_multiplier(x.scale[0], y_params.scale[0]);
  const integer::CodeTable table = integer::rescale_table(stored_zero_point(x), multiplier, y);
  emit(integer::QuantizedLookup{elements_of(output_dims()), {table.begin(), table.end()}}, {value});
}

std::optional<MergedPad> Lowering::merged_pad() const {
  const auto pad = pads_.find(input_index(0));
  if (pad == pads_.end()) return std::nullopt;
  return pad->second;
}

bool Lowering::leave_to_convolution(const MergedPad& pad) {
  const Readers& readers = readers_[static_cast<size_t>(output_index())];
  if (readers.count != 1 || readers.last == nullptr) return false;
  const tflite::Operation& reader = *readers.last;
  const bool is_convolution = reader.kind == Kind::kConv2d || reader.kind == Kind::kDepthwiseConv2d;
  constexpr int8_t kValid = 1;
  if (!is_convolution || reader.inputs[0] != output_index() ||
      reader.options.get<int8_t>(0, 0) != kValid) {
    return false;
  }
  value(0);  // throws unless an operation before computes it
  pads_[output_index()] = pad;
  return true;
}

bool Lowering::take_float_input() {
  const auto position = float_inputs_.find(input_index(0));
  if (position == float_inputs_.end()) return false;
  int& id = ids_[static_cast<size_t>(position->first)];
  if (id == kFloat) {
    id = add_value(input(0).name, sample_shape(input_dims(0)), output_params());
    program_.inputs[position->second] = id;
  } else if (!(*program_.value(id).params == output_params())) {
    throw Refusal{"of an input that another QUANTIZE reads, with other parameters"};
  }
  alias(id);
  return true;
}

}  // namespace quantrain::tflite
