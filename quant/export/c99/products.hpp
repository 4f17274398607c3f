#pragma once

#include <string>

#include "quant/export/c99/steps.hpp"

// Convolutions and linear layers.
namespace quantrain::c99 {

/// The steps' products, in the words of the exporter: output pixels, each with a patch of the input
/// that is `length` codes long, for every group.
struct ProductStep {
  kernels::Conv2dShape shape;  ///< of a linear layer: its rows as pixels of one row
  const integer::QuantizedProduct* product = nullptr;
  bool linear = false;

  int64_t pixels() const { return shape.oh() * shape.ow(); }
  int64_t length() const { return shape.reduction(); }
  bool depthwise() const { return !linear && shape.group_c() == 1 && shape.group_o() == 1; }
  /// The codes of a patch lie one after the other in the input.
  bool contiguous() const;
  /// Bits of a stored weight.
  int stored_bits(const Settings& settings) const;
};

/// Whether a shift of the output needs 64 bits.
bool any_shift(const integer::QuantizedProduct& product);

ProductStep product_step(const integer::QuantizedConv2d& op);
ProductStep product_step(const integer::QuantizedLinear& op);

int64_t local_bytes(const ProductStep& step, const Settings& settings);
StepSource step_source(const ProductStep& step,
                       const std::string& id,
                       Order order,
                       const Settings& settings,
                       Needs& needs);

/// The C of a form's function, with or without outputs beyond groups of four; and of depthwise
/// convolutions', to codes or to sums.
std::string product_function(const ProductForm& form, bool rows);
std::string depthwise_function(const DepthwiseForm& form, bool rows);

/// The loop over `step` pixels at a time, "for (...) {", with `i` the first of them.
std::string pixel_loop(const kernels::Conv2dShape& shape, int64_t step, Order order);
/// The line that sets `top` and `left` for pixel `i`.
std::string window_corner(const kernels::Conv2dShape& shape, const std::string& pixel);

}  // namespace quantrain::c99
