#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "framework/integer/operation.hpp"
#include "quant/export/c99/memory.hpp"

// The C of one step of a program.
namespace quantrain::c99 {

/// A form of the product functions that a network uses.
struct ProductForm {
  bool pair = false;  ///< two pixels at a time
  bool codes = true;  ///< requantized, or the sums themselves
  int bits = 8;       ///< of a stored weight: 8, 4 or 2

  friend auto operator<=>(const ProductForm&, const ProductForm&) = default;
  /// "product_pair", "sums_one_4bit": the C function's name.
  std::string name() const;
};

/// The same of depthwise convolutions.
struct DepthwiseForm {
  bool codes = true;
  int64_t taps = 1;

  friend auto operator<=>(const DepthwiseForm&, const DepthwiseForm&) = default;
  std::string name() const;  ///< "depthwise_9"
};

/// What the steps of a network call.
struct Needs {
  /// Whether some have outputs beyond groups of four.
  std::map<ProductForm, bool> products;
  std::map<DepthwiseForm, bool> depthwise;
  bool requantize = false;
  bool requantize_any = false;  ///< with shifts that need 64 bits
  bool softmax = false;
};

/// What all steps of a network share.
struct Settings {
  bool pack_weights = true;  ///< weights of up to 4 bits lie packed
  bool any_shift = false;    ///< some product has a shift that needs 64 bits
};

struct StepSource {
  std::string text;  ///< tables and functions
  std::string call;  ///< statement with X0, X1, ..., Y and LOCAL for the pointers
  int64_t table_bytes = 0;
};

/// Bytes that a step needs for itself while it runs.
int64_t local_bytes(const integer::Operation& op, const Settings& settings);
/// Whether a product has a shift that needs 64 bits.
bool has_any_shift(const integer::Operation& op);
/// Functions and tables have names that end in `id`.
StepSource step_source(const integer::Operation& op,
                       const std::string& id,
                       Order order,
                       const Settings& settings,
                       Needs& needs);

}  // namespace quantrain::c99
