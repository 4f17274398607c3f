#pragma once

#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/stored.hpp"
#include "framework/integer/prepared.hpp"

namespace quantrain::integer {

/// What each stored code of an input becomes.
using CodeTable = std::array<uint8_t, 256>;
/// What a function gives for each stored code; 0 for those that x's type does not have.
using CodeValues = std::array<double, 256>;

/// y = table[x]: any function of one code. A ReLU on its own, other parameters for the same values
/// by (8), an elementwise function by (18). Or one table of 256 after the other for each of C
/// channels, the last axis: y[i] = table[256 (i % C) + x[i]].   docs/quantization.md (8), (9), (18)
/// Shapes of a sample: x, y [size], a multiple of C.
/// Source: XNNPACK's LUT elementwise operator; TFLite's lookup of quantized activations.
struct QuantizedLookup {
  static constexpr std::string_view kType = "quantized_lookup";
  static constexpr bool kKeepsParams = false;
  static constexpr bool kRunsInPlace = true;
  static constexpr int64_t kCodes = 256;  ///< of a table

  int64_t size = 1;
  std::vector<uint8_t> table = std::vector<uint8_t>(kCodes);

  /// The same real values at other parameters, after an activation.   docs/quantization.md (8),
  /// (9)
  /// Throws: QuantError if parameters are not those of activations, or the multiplier makes no
  /// sense.
  static QuantizedLookup rescale(int64_t size,
                                 const QParams& x,
                                 const QParams& y,
                                 Activation activation);
  /// What a function gives for each stored code of x, quantized by (3): the same function for all
  /// channels, or one for each.   docs/quantization.md (18)
  /// Throws: QuantError naming `where` and the real value if one is NaN or infinite; as rescale()
  /// for the parameters.
  static QuantizedLookup function(int64_t size,
                                  const std::vector<CodeValues>& values,
                                  const QParams& x,
                                  const QParams& y,
                                  Activation activation,
                                  std::string_view where);

  /// Tables that there are: 1 is for all channels.
  int64_t channels() const { return static_cast<int64_t>(table.size()) / kCodes; }
  /// What x becomes in channel c, of any number.
  uint8_t at(int64_t c, int64_t x) const {
    return table[static_cast<size_t>(c % channels() * kCodes + x)];
  }
  std::string_view kernel() const { return channels() == 1 ? "lookup_u8" : "lookup_channels_u8"; }
  std::vector<int64_t> input_sizes() const { return {size}; }
  int64_t output_size() const { return size; }
  /// Throws: ShapeError naming `where` for a size that makes no sense, or is no multiple of the
  /// channels; or unless the table is one for each.
  void validate(std::string_view where) const;
  friend bool operator==(const QuantizedLookup&, const QuantizedLookup&) = default;

  static void describe(auto& op, auto& fields) {
    fields("size", op.size);
    fields("table", op.table);
  }
};

/// y[q] = equation (8) of q - zero_x, for every byte q.
CodeTable rescale_table(int32_t zero_x, Multiplier multiplier, const StoredOutput& y);
/// f of the real value of each code that x's type has, in double.   docs/quantization.md (18)
CodeValues code_values(const std::function<double(double)>& f, const QParams& x);
/// Stored codes that x's type has; others never occur.
std::vector<int32_t> stored_codes(const QParams& x);

template <>
class Prepared<QuantizedLookup> {
 public:
  explicit Prepared(const QuantizedLookup& op) : op_(&op) {}
  /// The output may be the input.
  void run(int64_t n, Inputs inputs, void* output) const;

 private:
  const QuantizedLookup* op_;
};

}  // namespace quantrain::integer
