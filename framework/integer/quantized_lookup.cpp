#include "framework/integer/quantized_lookup.hpp"

#include <algorithm>
#include <cmath>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/integer/sizes.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain::integer {

CodeTable rescale_table(int32_t zero_x, Multiplier multiplier, const StoredOutput& y) {
  CodeTable table;
  for (int32_t q = 0; q < 256; ++q) {
    table[static_cast<size_t>(q)] =
        static_cast<uint8_t>(requantize(q - zero_x, multiplier, y.zero_point, y.lo, y.hi));
  }
  return table;
}

std::vector<int32_t> stored_codes(const QParams& x) {
  std::vector<int32_t> codes;
  const int32_t offset = stored_offset(x.type);
  for (int32_t q = x.type.qmin(); q <= x.type.qmax(); ++q) codes.push_back(q + offset);
  return codes;
}

CodeValues code_values(const std::function<double(double)>& f, const QParams& x) {
  if (!f) throw QuantError("lookup", "the function is null");
  const DefaultRounding rounding;
  CodeValues values{};
  for (const int32_t q : stored_codes(x)) values[static_cast<size_t>(q)] = f(code_value(q, x));
  return values;
}

QuantizedLookup QuantizedLookup::rescale(int64_t size,
                                         const QParams& x,
                                         const QParams& y,
                                         Activation activation) {
  check_activation(x, "lookup");
  const StoredOutput stored = stored_output(y, activation);
  const Multiplier multiplier = rescale_multiplier(x.scale[0], y.scale[0]);
  const CodeTable table = rescale_table(stored_zero_point(x), multiplier, stored);
  return {.size = size, .table = {table.begin(), table.end()}};
}

QuantizedLookup QuantizedLookup::function(int64_t size,
                                          const std::vector<CodeValues>& values,
                                          const QParams& x,
                                          const QParams& y,
                                          Activation activation,
                                          std::string_view where) {
  const DefaultRounding rounding;
  check_activation(x, where);
  const StoredOutput stored = stored_output(y, activation);
  QuantizedLookup lookup{.size = size, .table = {}};
  for (const CodeValues& channel : values) {
    CodeTable table;
    table.fill(static_cast<uint8_t>(std::clamp(stored.zero_point, stored.lo, stored.hi)));
    for (const int32_t q : stored_codes(x)) {
      const double value = channel[static_cast<size_t>(q)];
      if (!std::isfinite(value))
        throw QuantError(where,
                         "the function is ",
                         value,
                         " at ",
                         code_value(q, x),
                         ", a value that its input can have: the function must be finite there");
      const int32_t code =
          quantize(static_cast<float>(value), y.scale[0], stored.zero_point, stored.lo, stored.hi);
      table[static_cast<size_t>(q)] = static_cast<uint8_t>(code);
    }
    lookup.table.insert(lookup.table.end(), table.begin(), table.end());
  }
  return lookup;
}

std::optional<CodeClamp> QuantizedLookup::output_codes(const QParams& x) const {
  CodeClamp all{255, 0};
  for (int64_t c = 0; c < channels(); ++c) {
    for (const int32_t q : stored_codes(x)) {
      const int32_t code = at(c, q);
      all = {std::min(all.lo, code), std::max(all.hi, code)};
    }
  }
  return all;
}

Channels QuantizedLookup::output_channels(InputChannels inputs) const {
  const Channels& x = *inputs[0];
  Channels result = channels() == 1 ? x : over(x, channels());
  for (size_t c = 0; c < result.size(); ++c) {
    const Interval codes = result[c];
    result[c] = {255, 0};
    for (int64_t q = codes.lo; q <= codes.hi; ++q) {
      const int64_t code = at(static_cast<int64_t>(c), q);
      result[c] = result[c].joined({code, code});
    }
  }
  return result;
}

void QuantizedLookup::remove_channels(const std::vector<bool>& dead) {
  size = without_dead(dead, size);
  if (channels() == 1) return;
  std::vector<uint8_t> left;
  for (size_t c = 0; c < dead.size(); ++c) {
    const auto first = table.begin() + static_cast<std::ptrdiff_t>(c * kCodes);
    if (!dead[c]) left.insert(left.end(), first, first + kCodes);
  }
  table = std::move(left);
}

void QuantizedLookup::validate(std::string_view where) const {
  check_size(where, {size});
  if (table.empty() || table.size() % kCodes != 0)
    throw ShapeError(where, "a table of ", table.size(), " codes, expected 256 for each channel");
  if (size % channels() != 0)
    throw ShapeError(
        where, "tables of ", channels(), " channels do not fit samples of ", size, " codes");
}

void Prepared<QuantizedLookup>::run(int64_t n, Inputs inputs, void* output) const {
  auto* const y = static_cast<uint8_t*>(output);
  const int64_t channels = op_->channels();
  const uint8_t* const table = op_->table.data();
  if (channels == 1) {
    kernels::lookup_u8(n * op_->size, inputs[0], table, y);
  } else {
    kernels::lookup_channels_u8(n * op_->size / channels, channels, inputs[0], table, y);
  }
}

}  // namespace quantrain::integer
