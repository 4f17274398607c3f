#include "quant/export/c99/product_tables.hpp"

#include <algorithm>
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
std::vector<int32_t> start_values(const ProductStep& step) {
  const QuantizedProduct& p = *step.product;
  std::vector<int32_t> start(static_cast<size_t>(step.shape.o));
  for (int64_t o = 0; o < step.shape.o; ++o) {
    int64_t sum = 0;
    for (int64_t k = 0; k < step.length(); ++k) sum += p.weight[o * step.length() + k];
    const int64_t bias = p.bias.empty() ? 0 : p.bias[o];
    start[static_cast<size_t>(o)] = static_cast<int32_t>(bias - p.zero_x * sum);
  }
  return start;
}

// With MVE, the C core reads input codes minus 128 if rows of 8-bit weights are stored in groups of
// four. Each sum of such a row then starts at a value that is larger by 128 times the sum of the
// row's weights, modulo 2^32.
std::string start_table(const ProductStep& step, const std::string& id, const Settings& settings) {
  const std::vector<int32_t> start = start_values(step);
  if (step.depthwise() || step.stored_bits(settings) < 8)
    return table<int32_t>("int32_t", cat("start", id), start);
  const QuantizedProduct& p = *step.product;
  std::string text = cat("static const int32_t start", id, "[", start.size(), "] TABLE = {\n");
  for (int64_t o = 0; o < step.shape.o; ++o) {
    const int32_t value = start[static_cast<size_t>(o)];
    int64_t sum = 0;
    for (int64_t k = 0; k < step.length(); ++k) sum += p.weight[o * step.length() + k];
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

}  // namespace

std::string product_tables(const ProductStep& step,
                           const std::string& id,
                           const Settings& settings,
                           int64_t* bytes) {
  const QuantizedProduct& p = *step.product;
  const Conv2dShape& s = step.shape;
  const int bits = step.stored_bits(settings);
  const int64_t groups = step.depthwise() ? 1 : s.groups;
  const int64_t outputs = s.o / groups;
  const int64_t per_group = outputs * step.length();

  std::string text;
  int64_t group_size = 0;  // table entries of one convolution group
  if (bits < 8) {
    std::vector<uint32_t> all;
    for (int64_t g = 0; g < groups; ++g) {
      const auto words =
          packed_weights(p.weight.data() + g * per_group, outputs, step.length(), bits);
      group_size = static_cast<int64_t>(words.size());
      all.insert(all.end(), words.begin(), words.end());
    }
    text += table<uint32_t>("uint32_t", cat("weights", id), all);
    *bytes += 4 * static_cast<int64_t>(all.size());
  } else {
    std::vector<int8_t> all;
    for (int64_t g = 0; g < groups; ++g) {
      const int8_t* const w = p.weight.data() + g * per_group;
      const auto codes = step.depthwise() ? depthwise_weights(w, outputs, step.length())
                                          : grouped_weights(w, outputs, step.length());
      group_size = static_cast<int64_t>(codes.size());
      all.insert(all.end(), codes.begin(), codes.end());
    }
    if (step.depthwise()) {
      text += table<int8_t>("int8_t", cat("weights", id), all);
    } else {
      text += grouped_table(cat("weights", id), all, groups, outputs, round_up(step.length(), 4));
    }
    *bytes += static_cast<int64_t>(all.size());
  }
  text += start_table(step, id, settings);
  *bytes += 4 * s.o;
  const bool any = any_shift(p);
  if (p.output) {
    std::vector<int32_t> shift = p.output->shift;
    if (!any) {
      for (int32_t& n : shift) n -= 32;
    }
    text += table<int32_t>("int32_t", cat("multiplier", id), p.output->m0);
    text += table<int32_t>("uint8_t", cat("shift", id), shift);
    *bytes += 5 * s.o;
  }
  const int64_t quantum = bits < 8 ? fields(bits) : 4;
  const int64_t length = step.depthwise() ? step.length() : round_up(step.length(), quantum);
  text += cat("static const struct product product", id, "[", groups, "] = {\n");
  for (int64_t g = 0; g < groups; ++g) {
    const auto at = [&](const char* name, int64_t offset) {
      return cat(name, id, g == 0 ? std::string() : cat(" + ", offset));
    };
    // For MVE, the macro GROUP_ROW pads the rows of each group of four, so the C compiler computes
    // the offset of convolution group g.
    const std::string weights = bits < 8 || step.depthwise() || g == 0
                                    ? at("weights", g * group_size)
                                    : cat("weights",
                                          id,
                                          " + ",
                                          g,
                                          " * (",
                                          outputs / 4 * 4,
                                          " * GROUP_ROW(",
                                          length,
                                          ") + ",
                                          outputs % 4 * length,
                                          ")");
    text += cat("  {", weights, ", ", at("start", g * outputs), ", ");
    if (p.output) {
      text += cat(at("multiplier", g * outputs),
                  ", ",
                  at("shift", g * outputs),
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
