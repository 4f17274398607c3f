#include "quant/export/c99/product_tables.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "quant/export/c99/layout.hpp"
#include "quant/export/c99/text.hpp"

namespace quantrain::c99 {
namespace {

using integer::QuantizedProduct;
using kernels::Conv2dShape;

// The sum of each output starts at bias - zero_x * sum of weights, so the input's zero point costs
// nothing at run time.
std::vector<int32_t> start_values(const ProductStep& step, const SharedArray<int8_t>& weight) {
  const QuantizedProduct& p = *step.product;
  std::vector<int32_t> start(static_cast<size_t>(step.shape.o));
  for (int64_t o = 0; o < step.shape.o; ++o) {
    int64_t sum = 0;
    for (int64_t k = 0; k < step.length(); ++k) sum += weight[o * step.length() + k];
    const int64_t bias = p.bias.empty() ? 0 : p.bias[o];
    start[static_cast<size_t>(o)] = static_cast<int32_t>(bias - p.zero_x * sum);
  }
  return start;
}

// For an output of 1 bit: values v for which the code is lo if v plus the sum of products is
// negative, and else lo + 1. The sum lies in [-length, length], and (8) never falls as it rises.
std::vector<int32_t> thresholds(const ProductStep& step) {
  const QuantizedProduct& p = *step.product;
  const StoredOutput& y = p.output->y;
  const int64_t length = step.length();
  std::vector<int32_t> result;
  for (int64_t o = 0; o < step.shape.o; ++o) {
    const Multiplier multiplier{p.output->m0[o], p.output->shift[o]};
    const int64_t bias = p.bias.empty() ? 0 : p.bias[o];
    // The least sum with the code lo + 1 is above `below` and at most `from`.
    int64_t below = -length - 1, from = length + 1;
    while (from - below > 1) {
      const int64_t middle = below + (from - below) / 2;
      const auto acc = static_cast<int32_t>(bias + middle);
      (requantize(acc, multiplier, y.zero_point, y.lo, y.hi) == y.hi ? from : below) = middle;
    }
    result.push_back(static_cast<int32_t>(-from));
  }
  return result;
}

// With MVE, the C core reads input codes minus 128 if rows of 8-bit weights are stored in groups of
// four. Each sum of such a row then starts at a value that is larger by 128 times the sum of the
// row's weights, modulo 2^32.
std::string start_table(const std::string& name,
                        const ProductStep& step,
                        const SharedArray<int8_t>& weight,
                        const Settings& settings) {
  const std::vector<int32_t> start =
      step.thresholds(settings) ? thresholds(step) : start_values(step, weight);
  if (step.depthwise() || step.stored_bits(settings) < 8)
    return table<int32_t>("int32_t", name, start);
  std::string text = cat("static const int32_t ", name, "[", start.size(), "] TABLE = {\n");
  for (int64_t o = 0; o < step.shape.o; ++o) {
    const int32_t value = start[static_cast<size_t>(o)];
    int64_t sum = 0;
    for (int64_t k = 0; k < step.length(); ++k) sum += weight[o * step.length() + k];
    const bool grouped = o % step.shape.group_o() < step.shape.group_o() / 4 * 4;
    const auto moved =
        static_cast<int32_t>(static_cast<uint32_t>(value + (grouped ? 128 * sum : 0)));
    text += cat("  START(", value, ", ", moved, "),\n");
  }
  return text + "};\n";
}

// A table of weights. It holds the rows of each convolution group in groups of four, followed by up
// to three remaining rows. In a group of four rows, up to sixteen weights of each row are the
// arguments of one macro of the C core, ROWS_n(...). The macro lets the C core reorder the weights
// for MVE.
std::string grouped_table(const std::string& name,
                          std::span<const int8_t> weights,
                          int64_t groups,
                          int64_t outputs,
                          int64_t length) {
  std::string text = cat("static const int8_t ", name, "[] TABLE = {\n");
  size_t at = 0;
  const auto next = [&](int64_t n) {
    const std::vector<int64_t> values(
        weights.begin() + static_cast<std::ptrdiff_t>(at),
        weights.begin() + static_cast<std::ptrdiff_t>(at) + static_cast<std::ptrdiff_t>(n));
    at += static_cast<size_t>(n);
    std::string lines = list(values);
    return lines.substr(0, lines.size() - 1);  // without the newline
  };
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t o = 0; o + 4 <= outputs; o += 4) {
      for (int64_t k = 0; k < length; k += 16) {
        const int64_t codes = std::min<int64_t>(16, length - k);
        std::string values = next(4 * codes);
        values.pop_back();  // the last comma
        text += cat("ROWS_", codes, "(\n", values, "),\n");
      }
    }
    if (outputs % 4 != 0) text += next(outputs % 4 * length) + "\n";
  }
  return text + "};\n";
}

/// Writes tables. A table that equals an earlier one of the network is not written again.
class Tables {
 public:
  /// The earlier tables: their names, by their text without the name.
  explicit Tables(std::map<std::string, std::string>& names) : names_(names) {}

  /// make(name) gives the text of a table with `bytes` bytes. Returns the name of the table.
  template <class Make>
  std::string add(const std::string& name, int64_t bytes, const Make& make) {
    const auto [at, is_new] = names_.emplace(make(std::string()), name);
    if (is_new) {
      text_ += make(name);
      bytes_ += bytes;
    }
    return at->second;
  }
  const std::string& text() const& { return text_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::map<std::string, std::string>& names_;
  std::string text_;
  int64_t bytes_ = 0;
};

}  // namespace

std::string product_tables(const ProductStep& step,
                           const std::string& id,
                           const Settings& settings,
                           Needs& needs,
                           int64_t* bytes) {
  const QuantizedProduct& p = *step.product;
  const SharedArray<int8_t> weight = p.weight.codes();
  const Conv2dShape& s = step.shape;
  const int bits = step.stored_bits(settings);
  const int64_t groups = step.depthwise() ? 1 : s.groups;
  const int64_t outputs = s.o / groups;
  const int64_t per_group = outputs * step.length();

  Tables tables(needs.tables);
  std::string weights, start, multiplier, shift;  // names of tables
  int64_t group_size = 0;                         // table entries of one convolution group
  if (bits < 8) {
    std::vector<uint32_t> all;
    for (int64_t g = 0; g < groups; ++g) {
      const int8_t* const w = weight.data() + g * per_group;
      const auto words = step.binary(settings) ? bit_weights(w, outputs, step.length())
                                               : packed_weights(w, outputs, step.length(), bits);
      group_size = static_cast<int64_t>(words.size());
      all.insert(all.end(), words.begin(), words.end());
    }
    weights = tables.add(cat("weights", id), 4 * std::ssize(all), [&](const std::string& name) {
      return table<uint32_t>("uint32_t", name, all);
    });
  } else {
    std::vector<int8_t> all;
    for (int64_t g = 0; g < groups; ++g) {
      const int8_t* const w = weight.data() + g * per_group;
      const auto codes = step.depthwise() ? depthwise_weights(w, outputs, step.length())
                                          : grouped_weights(w, outputs, step.length());
      group_size = static_cast<int64_t>(codes.size());
      all.insert(all.end(), codes.begin(), codes.end());
    }
    weights = tables.add(cat("weights", id), std::ssize(all), [&](const std::string& name) {
      if (step.depthwise()) return table<int8_t>("int8_t", name, all);
      return grouped_table(name, all, groups, outputs, round_up(step.length(), 4));
    });
  }
  start = tables.add(cat("start", id), 4 * s.o, [&](const std::string& name) {
    return start_table(name, step, weight, settings);
  });
  const bool any = any_shift(p);
  if (p.output && step.thresholds(settings)) {
    multiplier = shift = "0";  // not read
  } else if (p.output) {
    std::vector<int32_t> shifts = p.output->shift.values();
    if (!any) {
      for (int32_t& n : shifts) n -= 32;
    }
    multiplier = tables.add(cat("multiplier", id), 4 * s.o, [&](const std::string& name) {
      return table<int32_t>("int32_t", name, p.output->m0);
    });
    shift = tables.add(cat("shift", id), s.o, [&](const std::string& name) {
      return table<int32_t>("uint8_t", name, shifts);
    });
  }
  *bytes += tables.bytes();
  const int64_t length = step.depthwise() ? step.length() : round_up(step.length(), 4);
  std::string text =
      cat(tables.text(), "static const struct product product", id, "[", groups, "] = {\n");
  for (int64_t g = 0; g < groups; ++g) {
    const auto at = [&](const std::string& name, int64_t offset) {
      return cat(name, g == 0 || name == "0" ? std::string() : cat(" + ", offset));
    };
    // For MVE, the macro GROUP_ROW pads the rows of each group of four, so the C compiler computes
    // the offset of convolution group g.
    const std::string first = bits < 8 || step.depthwise() || g == 0 ? at(weights, g * group_size)
                                                                     : cat(weights,
                                                                           " + ",
                                                                           g,
                                                                           " * (",
                                                                           outputs / 4 * 4,
                                                                           " * GROUP_ROW(",
                                                                           length,
                                                                           ") + ",
                                                                           outputs % 4 * length,
                                                                           ")");
    text += cat("  {", first, ", ", at(start, g * outputs), ", ");
    if (p.output) {
      text += cat(at(multiplier, g * outputs),
                  ", ",
                  at(shift, g * outputs),
                  ", ",
                  length,
                  ", ",
                  outputs,
                  ", ",
                  p.output->y.zero_point,
                  ", ",
                  p.output->y.lo,
                  ", ",
                  p.output->y.hi);
    } else {
      text += cat("0, 0, ", length, ", ", outputs, ", 0, 0, 0");
    }
    if (settings.any_shift) text += cat(", ", any ? 1 : 0);
    text += "},\n";
  }
  return text + "};\n";
}

}  // namespace quantrain::c99
