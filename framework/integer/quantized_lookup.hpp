#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/stored.hpp"
#include "framework/integer/channels.hpp"
#include "framework/integer/prepared.hpp"

namespace quantrain::integer {

/// Output code for each stored code of an input.
using CodeTable = std::array<uint8_t, 256>;
/// Value of a function for each stored code; 0 for bytes that are not codes of the input's type.
using CodeValues = std::array<double, 256>;

/// y = table[x]. The table can be any function of one code: a ReLU that is not fused, a change of
/// parameters by (8), or an elementwise function by (18). With a table for each of C channels (the
/// last axis), y[i] = table[256 (i % C) + x[i]].   docs/quantization.md (8), (9), (18)
/// Shapes of a sample: x, y [size], a multiple of C.
/// Source: XNNPACK's LUT elementwise operator; TFLite's lookup of quantized activations.
struct QuantizedLookup {
  static constexpr std::string_view kType = "quantized_lookup";
  static constexpr bool kKeepsParams = false;
  static constexpr bool kRunsInPlace = true;
  static constexpr ChannelUse kChannels = ChannelUse::kSame;
  static constexpr int64_t kCodes = 256;  ///< entries of one table

  int64_t size = 1;
  std::vector<uint8_t> table = std::vector<uint8_t>(kCodes);

  /// Changes the parameters of the codes, with a fused activation.   docs/quantization.md (8),
  /// (9)
  /// Throws: QuantError if x or y is per channel or has more than 8 bits, or the multiplier is out
  /// of range.
  static QuantizedLookup rescale(int64_t size,
                                 const QParams& x,
                                 const QParams& y,
                                 Activation activation);
  /// Makes the table of a function by quantizing its values by (3). `values` holds the function's
  /// values for the stored codes of x: one CodeValues for all channels, or one for each channel.
  /// docs/quantization.md (18)
  /// Throws: QuantError naming `where` and the input's real value if a value is NaN or infinite;
  /// QuantError if x or y is per channel or has more than 8 bits.
  static QuantizedLookup function(int64_t size,
                                  const std::vector<CodeValues>& values,
                                  const QParams& x,
                                  const QParams& y,
                                  Activation activation,
                                  std::string_view where);

  /// Number of tables: one for all channels, or one for each channel.
  int64_t channels() const { return static_cast<int64_t>(table.size()) / kCodes; }
  /// Output code of x in channel c. c may exceed channels(), because tables repeat.
  uint8_t at(int64_t c, int64_t x) const {
    return table[static_cast<size_t>(c % channels() * kCodes + x)];
  }
  std::string_view kernel() const { return channels() == 1 ? "lookup_u8" : "lookup_channels_u8"; }
  std::vector<int64_t> input_sizes() const { return {size}; }
  int64_t output_size() const { return size; }
  int32_t input_zero_point(size_t) const { return -1; }
  int32_t output_zero_point() const { return -1; }
  std::optional<CodeClamp> output_codes(const QParams& x) const;
  int64_t prepared_bytes() const { return 0; }
  int64_t scratch_bytes(int64_t) const { return 0; }
  Channels output_channels(InputChannels inputs) const;
  void remove_channels(const std::vector<bool>& dead);
  /// Throws: ShapeError naming `where` if the size is out of range or not a multiple of channels(),
  /// or the table does not have 256 entries for each channel.
  void validate(std::string_view where) const;
  friend bool operator==(const QuantizedLookup&, const QuantizedLookup&) = default;

  static void describe(auto& op, auto& fields) {
    fields("size", op.size);
    fields("table", op.table);
  }
};

/// Requantizes q - zero_x by (8), for every byte q.
CodeTable rescale_table(int32_t zero_x, Multiplier multiplier, const StoredOutput& y);
/// The value of f at the real value of each code of x's type, in double.
/// docs/quantization.md (18)
/// Throws: QuantError if f is null.
CodeValues code_values(const std::function<double(double)>& f, const QParams& x);
/// The stored codes of x's type. Other bytes never occur.
std::vector<int32_t> stored_codes(const QParams& x);

template <>
class Prepared<QuantizedLookup> {
 public:
  explicit Prepared(const QuantizedLookup& op) : op_(&op) {}
  Prepared(const QuantizedLookup&& op) = delete;
  /// The output may overwrite the input.
  void run(int64_t n, Inputs inputs, void* output) const;

 private:
  const QuantizedLookup* op_;
};

}  // namespace quantrain::integer
