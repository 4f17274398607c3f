#include "quant/integer/quantized_concat.hpp"

#include "framework/core/error.hpp"
#include "framework/kernels/integer.hpp"
#include "quant/integer/params_attributes.hpp"

namespace quantrain::quant {
namespace {

// Prefix of an operand's attributes.
std::string operand(size_t i) { return std::string("x").append(std::to_string(i)); }

}  // namespace

QuantizedConcat::QuantizedConcat(const std::string& name, Spec spec)
    : RequantizedLayer(name),
      inputs_(std::move(spec.inputs)),
      axis_(spec.axis),
      x_(std::move(spec.x)) {
  if (inputs_.empty() || inputs_.size() != x_.size()) {
    throw ShapeError(name, inputs_.size(), " inputs with parameters for ", x_.size());
  }
  for (const QParams& x : x_) check_activation(x, name);
  for (const Shape& shape : inputs_) {
    bool fits = shape.rank() == inputs_[0].rank() && axis_ >= 0 && axis_ < shape.rank();
    for (int axis = 0; fits && axis < shape.rank(); ++axis)
      fits = axis == axis_ || shape[axis] == inputs_[0][axis];
    if (!fits)
      throw ShapeError(
          name, "cannot concatenate ", inputs_[0], " and ", shape, " along axis ", axis_);
    if (shape.elements() == 0) throw ShapeError(name, "an input has no elements: ", shape);
  }
  std::vector<int64_t> extents(inputs_[0].begin(), inputs_[0].end());
  int64_t& extent = extents[static_cast<size_t>(axis_)];
  extent = 0;
  for (const Shape& shape : inputs_) extent += shape[axis_];
  output_ = Shape(extents);
  requantize_to(x_[0], Activation::kNone);
}

void QuantizedConcat::set_output_scale(float scale_y) {
  std::vector<Multiplier> multipliers;
  for (const QParams& x : x_) {
    multipliers.push_back(rescale_multiplier(x.scale[0], scale_y));
  }
  multipliers_ = std::move(multipliers);
}

void QuantizedConcat::run(int64_t n, std::span<const uint8_t* const> inputs, void* output) const {
  const int64_t row = output_.elements();
  if (row == 0) return;
  const CodeClamp clamp = output_clamp();
  int64_t outer = 1;  // runs of one sample
  for (int axis = 0; axis < axis_; ++axis) outer *= inputs_[0][axis];
  int64_t column = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const int64_t run = inputs_[i].elements() / outer;
    kernels::rescale_rows_u8(n * outer,
                             run,
                             inputs[i],
                             stored_zero_point(x_[i]),
                             multipliers_[i],
                             output_zero_point(),
                             clamp.lo,
                             clamp.hi,
                             static_cast<uint8_t*>(output) + column,
                             row / outer);
    column += run;
  }
}

Attributes QuantizedConcat::attributes() const {
  Attributes attributes{{"count", static_cast<int64_t>(inputs_.size())}, {"axis", int64_t{axis_}}};
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const std::string x = operand(i);
    attributes.add(x + "_shape", std::vector<int64_t>(inputs_[i].begin(), inputs_[i].end()));
    append(attributes, x, x_[i]);
  }
  append_output(attributes);
  return attributes;
}

std::unique_ptr<IntegerLayer> QuantizedConcat::load(const std::string& name,
                                                    const Attributes& attributes,
                                                    std::vector<LayerTensor> /*tensors*/) {
  Spec spec;
  spec.axis = static_cast<int>(attributes.integer("axis"));
  for (size_t i = 0; i < static_cast<size_t>(attributes.integer("count")); ++i) {
    const std::string x = operand(i);
    spec.inputs.push_back(Shape(attributes.integers(x + "_shape")));
    spec.x.push_back(params_from(attributes, x, name));
  }
  auto layer = std::make_unique<QuantizedConcat>(name, std::move(spec));
  layer->load_output(attributes);
  return layer;
}

}  // namespace quantrain::quant
