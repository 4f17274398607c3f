#include "quant/integer/requantized_layer.hpp"

#include "framework/core/error.hpp"
#include "quant/integer/params_attributes.hpp"

namespace quantrain::quant {

QParams RequantizedLayer::output_params() const {
  if (!y_) throw QuantError(name(), "the output has no parameters: requantize_to() gives it some");
  return *y_;
}

void RequantizedLayer::requantize_to(const QParams& y, Activation activation) {
  check_activation(y, name());
  try {
    set_output_scale(y.scale[0]);
  } catch (const QuantError& error) {  // of the arithmetic, which knows no layers
    throw QuantError(name(), error.what());
  }
  y_ = y;
  activation_ = activation;
  output_is_set();
}

void RequantizedLayer::append_output(Attributes& attributes) const {
  attributes.add("activation", std::string(to_string(activation_)));
  if (y_) append(attributes, "y", *y_);
}

void RequantizedLayer::load_output(const Attributes& attributes) {
  requantize_to(params_from(attributes, "y", name()),
                activation_from(attributes.string("activation"), name()));
}

}  // namespace quantrain::quant
