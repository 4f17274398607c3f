#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "framework/integer/operation.hpp"
#include "quant/export/c99/memory.hpp"

// The C code of one step of a program.
namespace quantrain::c99 {

/// A form of the product function. An exported network contains only the forms that it uses.
struct ProductForm {
  bool pair = false;        ///< two pixels at a time
  bool codes = true;        ///< true: writes codes, by requantization; false: writes the sums
  int bits = 8;             ///< of a stored weight: 8, 4, 2 or 1
  bool binary = false;      ///< counts bits: weights and codes have 1 bit
  bool thresholds = false;  ///< binary, and the output has 1 bit: compares instead of requantizing
  int words = 0;            ///< binary: words of a row if two pixels need one or two, else 0

  friend auto operator<=>(const ProductForm&, const ProductForm&) = default;
  /// "product_pair", "sums_one_4bit", "bits_pair": the C function's name.
  std::string name() const;
};

/// The same for depthwise convolutions.
struct DepthwiseForm {
  bool codes = true;
  int64_t taps = 1;

  friend auto operator<=>(const DepthwiseForm&, const DepthwiseForm&) = default;
  std::string name() const;  ///< "depthwise_9"
};

/// The functions that the steps of a network call, and the tables that they share.
struct Needs {
  /// For each form: whether the number of outputs of some step is not a multiple of four. A grouped
  /// convolution counts the outputs of one group, a depthwise one counts its channels.
  std::map<ProductForm, bool> products;
  std::map<DepthwiseForm, bool> depthwise;
  bool requantize = false;
  bool requantize_any = false;  ///< requantization with shifts that need 64-bit arithmetic
  bool softmax = false;
  /// The names of the tables of products, by their text without the name: steps share equal ones.
  std::map<std::string, std::string> tables{};
};

/// What all steps of a network share.
struct Settings {
  bool pack_weights = true;  ///< weights of up to 4 bits are packed
  bool any_shift = false;    ///< some product has a shift that needs 64-bit arithmetic
};

struct StepSource {
  std::string text;  ///< tables and functions; empty if there is nothing to run
  /// The function step<id> takes its own bytes of the scratch as the last argument, cast by this;
  /// if null, it takes none.
  const char* local = nullptr;
  int64_t table_bytes = 0;
};

/// The head of a C loop over 0 <= i < size, `stride` at a time: "i = 0; i < 9; ++i".
std::string loop(std::string_view i, int64_t size, Order order, int64_t stride = 1);
/// Bytes of scratch that a step needs for itself while it runs.
int64_t local_bytes(const integer::Operation& op, const Settings& settings);
/// Whether the operation is a product with a shift that needs 64-bit arithmetic.
bool has_any_shift(const integer::Operation& op);
/// The C code of an operation. Names of its functions and tables contain `id`. Adds the functions
/// that it calls to `needs`.
StepSource step_source(const integer::Operation& op,
                       const std::string& id,
                       Order order,
                       const Settings& settings,
                       Needs& needs);

}  // namespace quantrain::c99
