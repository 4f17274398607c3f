#pragma once

#include <string>
#include <vector>

#include "quant/export/c99/steps.hpp"
#include "quant/export/c99/text.hpp"

// Convolutions and linear layers.
namespace quantrain::c99 {

/// A convolution or linear layer as the exporter sees it: each output pixel reads one patch of
/// `length` input codes for each convolution group.
struct ProductStep {
  kernels::Conv2dShape shape;  ///< linear layer: height 1, with one pixel for each row of the input
  const integer::QuantizedProduct* product = nullptr;
  bool linear = false;

  int64_t pixels() const { return shape.oh() * shape.ow(); }
  int64_t length() const { return shape.reduction(); }
  bool depthwise() const { return !linear && shape.group_c() == 1 && shape.group_o() == 1; }
  /// Whether the codes of a patch are contiguous in the input.
  bool contiguous() const;
  /// Bits of a stored weight.
  int stored_bits(const Settings& settings) const;
  /// Whether the step counts bits.   docs/quantization.md (27)
  bool binary(const Settings& settings) const;
  /// Whether it counts bits and its output has 1 bit, so that a comparison replaces (8).
  bool thresholds(const Settings& settings) const;
};

/// Whether any of the output's shifts needs 64-bit arithmetic.
bool any_shift(const integer::QuantizedProduct& product);

ProductStep product_step(const integer::QuantizedConv2d& op);
ProductStep product_step(const integer::QuantizedLinear& op);

int64_t local_bytes(const ProductStep& step, const Settings& settings);
StepSource step_source(const ProductStep& step,
                       const std::string& id,
                       Order order,
                       const Settings& settings,
                       Needs& needs);

/// The C function of a form, for products and for depthwise convolutions. It computes outputs in
/// groups of four. rows: whether it also computes the outputs that remain.
std::string product_function(const ProductForm& form, bool rows);
std::string depthwise_function(const DepthwiseForm& form, bool rows);

/// Values for the places of sections that go over the windows of a convolution or a pool.
std::vector<Named> window_values(const kernels::Conv2dShape& shape);

}  // namespace quantrain::c99
