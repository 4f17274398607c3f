#include "quant/export/c99/products.hpp"

#include <algorithm>
#include <array>

#include "quant/export/c99/layout.hpp"
#include "quant/export/c99/text.hpp"

namespace quantrain::c99 {
namespace {

using integer::QuantizedProduct;
using kernels::Conv2dShape;

constexpr int64_t kShortestPacked = 32;
constexpr int64_t kLongestPacked = 400000;  // 15 * 255 times that fits 32 bits
// With these shifts requantizing takes 32 bits: the low half of a product decides nothing, and the
// zero point fits in front of the shift.
bool is_short(int32_t shift) { return shift >= 33 && shift <= 52; }

// bias - zero_x * sum of weights: the input's zero point costs nothing at run time.
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

// In groups of 8-bit weights some forms see codes less 128, and start from 128 sums of weights
// more; modulo 2^32.
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

// A table of groups of four rows, with a macro around every sixteen codes of each row: some forms
// want them in another order.
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
    return lines.substr(0, lines.size() - 1);  // without the line's end
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

// The tables of a product and the structs, one for each group, that point to them.
std::string tables(const ProductStep& step,
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
  int64_t group_size = 0;  // in the table
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
    // Rows of a group may be longer than their codes.
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

// Whether the whole window at `top` and `left` lies in the image. None does where it is larger:
// comparisons that are never true together would make compilers warn.
std::string is_inside(const Conv2dShape& s) {
  if (s.h < s.kh || s.w < s.kw) return "0";
  return cat("top >= 0 && top <= ", s.h - s.kh, " && left >= 0 && left <= ", s.w - s.kw);
}

// Copies the codes of a window that may reach beyond the image.
std::string patch_function(const ProductStep& step, const std::string& id) {
  const Conv2dShape& s = step.shape;
  const int64_t c = s.group_c();
  const bool whole_rows = s.groups == 1;
  const bool padded = s.pad_h > 0 || s.pad_w > 0;
  std::string text = cat("static void patch",
                         id,
                         "(const uint8_t *x, int32_t top, int32_t left,"
                         " uint8_t *patch) {\n");
  std::string inside;
  if (whole_rows) {
    inside = cat("const uint8_t *from = x + (top * ", s.w, " + left) * ", s.c, ";\n");
    for (int64_t i = 0; i < s.kh; ++i) {
      inside += cat(
          "    memcpy(patch + ", i * s.kw * c, ", from + ", i * s.w * s.c, ", ", s.kw * c, ");\n");
    }
  }
  if (whole_rows && !padded) return text + "  " + inside + "}\n";
  text += "  int32_t i, j;\n";
  if (whole_rows) text += cat("  if (", is_inside(s), ") {\n    ", inside, "    return;\n  }\n");
  text += cat("  for (i = top; i < top + ",
              s.kh,
              "; ++i) {\n",
              "    for (j = left; j < left + ",
              s.kw,
              "; ++j, patch += ",
              c,
              ") {\n");
  const std::string copy = cat("memcpy(patch, x + (i * ", s.w, " + j) * ", s.c, ", ", c, ");\n");
  if (padded) {
    text += cat("      if (i >= 0 && i < ",
                s.h,
                " && j >= 0 && j < ",
                s.w,
                ")\n        ",
                copy,
                "      else\n        memset(patch, ",
                step.product->zero_x,
                ", ",
                c,
                ");\n");
  } else {
    text += "      " + copy;
  }
  return text + "    }\n  }\n}\n";
}

DepthwiseForm depthwise_form(const ProductStep& step) {
  return {.codes = step.product->output.has_value(), .taps = step.length()};
}

std::string depthwise_step(const ProductStep& step, const std::string& id, Order order) {
  const Conv2dShape& s = step.shape;
  const bool padded = s.pad_h > 0 || s.pad_w > 0;
  std::string inside;
  for (int64_t u = 0; u < s.kh; ++u) {
    for (int64_t v = 0; v < s.kw; ++v)
      inside += cat("      taps[", u * s.kw + v, "] = at + ", (u * s.w + v) * s.c, ";\n");
  }
  return fill(core(padded ? "depthwise_step_padded" : "depthwise_step"),
              {{"ID", id},
               {"TYPE", step.product->output ? "uint8_t" : "int32_t"},
               {"TAPS", cat(s.kh * s.kw)},
               {"ZERO", cat(step.product->zero_x)},
               {"PIXELS", pixel_loop(s, 1, order)},
               {"CORNER", window_corner(s, "i")},
               {"INSIDE", inside},
               {"HEIGHT", cat(s.h)},
               {"WIDTH", cat(s.w)},
               {"CHANNELS", cat(s.c)},
               {"ROW", cat(s.w * s.c)},
               {"IS_INSIDE", is_inside(s)},
               {"KH", cat(s.kh)},
               {"KW", cat(s.kw)},
               {"FUNCTION", depthwise_form(step).name()}});
}

std::string product_pixels(const ProductStep& step,
                           const std::string& id,
                           Order order,
                           const Settings& settings) {
  const Conv2dShape& s = step.shape;
  const int bits = step.stored_bits(settings);
  const int64_t quantum = bits < 8 ? fields(bits) : 4;
  const int64_t length = round_up(step.length(), quantum);
  const bool pair = step.pixels() > 1;
  const bool direct = step.contiguous() && step.length() % quantum == 0;
  const ProductForm form{pair, step.product->output.has_value(), bits};
  const char* const type = form.codes ? "uint8_t" : "int32_t";
  const int64_t columns = pair ? 4 * length : 0;

  std::string text;
  if (!direct && !step.contiguous()) text += patch_function(step, id);
  text += cat("static void step", id, "(const uint8_t *x, ", type, " *y, void *local) {\n");
  text += pair ? "  uint32_t *const columns = (uint32_t *)local;\n" : "";
  if (!direct) {
    text += cat("  uint8_t *const patch = (uint8_t *)local + ", columns, ";\n");
  }
  text += pair ? "  int32_t i;\n" : "";
  text += s.groups > 1 ? "  int32_t g;\n" : "";
  if (direct && !pair) text += "  (void)local;\n";
  if (!direct && length > step.length()) {
    text += cat("  memset(patch, 0, ", (pair ? 2 : 1) * length, ");\n");
  }

  // Where pixel `pixel`'s codes are read from; `slot` is its patch.
  const auto patch =
      [&](const std::string& pixel, const std::string& indent, int slot, const std::string& from) {
        const std::string to = slot == 0 ? "patch" : cat("patch + ", length);
        std::string lines;
        if (step.contiguous()) {
          lines = cat(indent, "memcpy(", to, ", ", from, ", ", step.length(), ");\n");
        } else {
          lines = cat(indent,
                      "{\n",
                      indent,
                      window_corner(s, pixel),
                      indent,
                      "  patch",
                      id,
                      "(",
                      s.groups > 1 ? cat("x + g * ", s.group_c()) : "x",
                      ", top, left, ",
                      to,
                      ");\n",
                      indent,
                      "}\n");
        }
        return lines;
      };
  const auto position = [&](const std::string& pixel) {
    if (s.oh() == 1 && s.ow() == 1) return std::string("x");
    const bool unit = s.stride_h == 1 && s.stride_w == 1 && s.kh == 1 && s.kw == 1;
    if (unit) return cat("x + ", pixel, " * ", s.c);
    return cat("x + (",
               pixel,
               " / ",
               s.ow(),
               " * ",
               s.stride_h * s.w,
               " + ",
               pixel,
               " % ",
               s.ow(),
               " * ",
               s.stride_w,
               ") * ",
               s.c);
  };
  const std::string product = cat("product", id, s.groups > 1 ? " + g" : "");
  const std::string channel = s.groups > 1 ? cat(" + g * ", s.group_o()) : "";
  const std::string group_loop =
      s.groups > 1 ? cat("for (g = 0; g < ", s.groups, "; ++g) {\n") : "";

  if (!pair) {
    const std::string indent = s.groups > 1 ? "    " : "  ";
    if (s.groups > 1) text += "  " + group_loop;
    std::string from = position("0");
    if (!direct) {
      text += patch("0", indent, 0, from);
      from = "patch";
    }
    text += cat(indent, form.name(), "(", product, ", ", from, ", y", channel, ");\n");
    return text + (s.groups > 1 ? "  }\n}\n" : "}\n");
  }

  const bool odd = step.pixels() % 2 == 1;
  text += pixel_loop(s, 2, order);
  // The last of an odd number of pixels is computed twice.
  const std::string next = odd ? "next" : "(i + 1)";
  if (odd) text += cat("    const int32_t next = i + 1 < ", step.pixels(), " ? i + 1 : i;\n");
  std::string indent = "    ";
  if (s.groups > 1) {
    text += indent + group_loop;
    indent += "  ";
  }
  std::string first = position("i"), second = position(next);
  if (!direct) {
    text += patch("i", indent, 0, first) + patch(next, indent, 1, second);
    first = "patch";
    second = cat("patch + ", length);
  }
  text += cat(indent,
              form.name(),
              "(",
              product,
              ", ",
              first,
              ", ",
              second,
              ", columns, y + i * ",
              s.o,
              channel,
              ", y + ",
              next,
              " * ",
              s.o,
              channel,
              ");\n");
  if (s.groups > 1) text += "    }\n";
  return text + "  }\n}\n";
}

// What requantizing needs at hand.
std::string setup(bool codes) {
  if (!codes) return {};
  return "  const int32_t *multiplier = p->multiplier;\n"
         "  const uint8_t *shift = p->shift;\n"
         "  const int32_t zero = p->zero, low = p->low, high = p->high;\n";
}

}  // namespace

bool any_shift(const integer::QuantizedProduct& product) {
  if (!product.output) return false;
  const auto& shift = product.output->shift;
  return std::any_of(shift.begin(), shift.end(), [](int32_t s) { return !is_short(s); });
}

std::string ProductForm::name() const {
  return cat(codes ? "product" : "sums",
             pair ? "_pair" : "_one",
             bits < 8 ? cat("_", bits, "bit") : std::string());
}

bool ProductStep::contiguous() const {
  const bool padded = shape.pad_h > 0 || shape.pad_w > 0;
  return shape.groups == 1 && !padded && (shape.kh == 1 || shape.kw == shape.w);
}

int ProductStep::stored_bits(const Settings& settings) const {
  if (!settings.pack_weights || depthwise() || product->weight_bits > 4) return 8;
  // Filling up a short sum costs more than its weights are worth.
  if (length() < kShortestPacked || length() > kLongestPacked) return 8;
  return product->weight_bits > 2 ? 4 : 2;
}

ProductStep product_step(const integer::QuantizedConv2d& op) {
  return {.shape = op.shape, .product = &op.product};
}

ProductStep product_step(const integer::QuantizedLinear& op) {
  return {.shape = {.w = op.rows, .c = op.inputs, .o = op.outputs},
          .product = &op.product,
          .linear = true};
}

int64_t local_bytes(const ProductStep& step, const Settings& settings) {
  const Conv2dShape& s = step.shape;
  if (step.depthwise()) return s.pad_h > 0 || s.pad_w > 0 ? s.c : 0;
  const int bits = step.stored_bits(settings);
  const int64_t quantum = bits < 8 ? fields(bits) : 4;
  const int64_t length = round_up(step.length(), quantum);
  const bool pair = step.pixels() > 1;
  const bool direct = step.contiguous() && step.length() % quantum == 0;
  return (pair ? 4 * length : 0) + (direct ? 0 : (pair ? 2 : 1) * length);
}

std::string DepthwiseForm::name() const {
  return cat(codes ? "depthwise_" : "depthwise_sums_", taps);
}

std::string depthwise_function(const DepthwiseForm& form, bool rows) {
  const bool codes = form.codes;
  std::string text = core("depthwise");
  text = replaced(text, "  ROWS\n", rows ? core("depthwise_rows") : "");
  text = replaced(text, "DEPTHWISE", form.name());
  text = replaced(text, "COUNT", cat(form.taps));
  // Written out where that is short.
  std::string each;
  if (form.taps <= 16) {
    for (int64_t t = 0; t < form.taps; ++t) each += cat(t > 0 ? "    TAP(" : "TAP(", t, ")\n");
    each.pop_back();
  } else {
    each = cat("{\n      int32_t t;\n      for (t = 0; t < ", form.taps, "; ++t) TAP(t)\n    }");
  }
  text = replaced(text, "EACH_TAP", each);
  text = replaced(text, "OUTPUT", codes ? "uint8_t" : "int32_t");
  text = replaced(text, "  SETUP\n", setup(codes));
  for (const char* const r : {"0", "1", "2", "3"}) {
    text = replaced(text,
                    cat("STORE(", r, ")"),
                    codes ? cat("y[",
                                r,
                                "] = code(p, s",
                                r,
                                ", multiplier[",
                                r,
                                "], shift[",
                                r,
                                "], zero, low, high);")
                          : cat("y[", r, "] = s", r, ";"));
  }
  text = replaced(
      text,
      "STORE_MVE",
      codes ? "store_4(p, sums, multiplier, shift, zero, low, high, y);" : "vst1q_s32(y, sums);");
  text = replaced(text, "    NEXT_GROUP\n", codes ? "    multiplier += 4;\n    shift += 4;\n" : "");
  text = replaced(text, "    NEXT_ROW\n", codes ? "    ++multiplier;\n    ++shift;\n" : "");
  return text;
}

StepSource step_source(const ProductStep& step,
                       const std::string& id,
                       Order order,
                       const Settings& settings,
                       Needs& needs) {
  const int bits = step.stored_bits(settings);
  const bool codes = step.product->output.has_value();
  if (codes) (any_shift(*step.product) ? needs.requantize_any : needs.requantize) = true;
  StepSource source;
  source.text = tables(step, id, settings, &source.table_bytes);
  if (step.depthwise()) {
    needs.depthwise[depthwise_form(step)] |= step.shape.c % 4 != 0;
    source.text += depthwise_step(step, id, order);
    const bool padded = step.shape.pad_h > 0 || step.shape.pad_w > 0;
    source.call = cat("step", id, padded ? "(X0, Y, (uint8_t *)LOCAL);" : "(X0, Y);");
    return source;
  }
  needs.products[{step.pixels() > 1, codes, bits}] |= step.shape.group_o() % 4 != 0;
  source.text += product_pixels(step, id, order, settings);
  source.call = cat("step", id, "(X0, Y, LOCAL);");
  return source;
}

std::string product_function(const ProductForm& form, bool rows) {
  const bool packed = form.bits < 8;
  std::string text = core(form.pair ? "product_pair" : "product_one");
  text = replaced(text, "  ROWS\n", rows ? core(form.pair ? "pair_rows" : "one_rows") : "");
  // A C compiler sees constants in their places; what a form has not is not there.
  text = replaced(text, form.pair ? "PRODUCT_pair" : "PRODUCT_one", form.name());
  text = replaced(text, "OUTPUT", form.codes ? "uint8_t" : "int32_t");
  text = replaced(text, "WEIGHT", packed ? "const uint32_t *" : "const int8_t *");
  text = replaced(
      text, "GROUP_STEP", packed ? cat("length / ", fields(form.bits)) : "GROUP_ROW(length)");
  text = replaced(text, "ROW_STEP", packed ? cat("length / ", fields(form.bits)) : "length");
  text = replaced(text, "  SETUP\n", setup(form.codes));
  text = replaced(
      text, "    NEXT_GROUP\n", form.codes ? "    multiplier += 4;\n    shift += 4;\n" : "");
  text = replaced(text, "    NEXT_ROW\n", form.codes ? "    ++multiplier;\n    ++shift;\n" : "");
  for (const char* const r : {"0", "1", "2", "3"}) {
    if (form.pair) {
      const std::string second = cat("sums[4 + ", r, "]");
      text = replaced(text,
                      cat("STORE_PAIR(", r, ")"),
                      form.codes
                          ? cat("store_pair(p, sums[",
                                r,
                                "], ",
                                second,
                                ", multiplier[",
                                r,
                                "], shift[",
                                r,
                                "], zero, low, high, y0 + ",
                                r,
                                ", y1 + ",
                                r,
                                ");")
                          : cat("y0[", r, "] = sums[", r, "];\n    y1[", r, "] = ", second, ";"));
    } else {
      text = replaced(text,
                      cat("STORE_ONE(", r, ")"),
                      form.codes ? cat("y[",
                                       r,
                                       "] = code(p, sums[",
                                       r,
                                       "], multiplier[",
                                       r,
                                       "], shift[",
                                       r,
                                       "], zero, low, high);")
                                 : cat("y[", r, "] = sums[", r, "];"));
    }
  }
  const std::string bits = cat(form.bits);
  if (packed) {
    const std::string offset = cat(1 << (form.bits - 1));
    text = replaced(text,
                    "  EXPAND_PAIR\n",
                    cat("  int32_t total[2];\n  expand_pair_packed(columns, x0, x1, length, ",
                        bits,
                        ", total);\n"));
    text = replaced(text, "  EXPAND_ONE\n", "  const int32_t total[1] = {sum_codes(x, length)};\n");
    text = replaced(text, " SHIFT0", cat(" - ", offset, " * total[0]"));
    text = replaced(text, " SHIFT1", cat(" - ", offset, " * total[1]"));
    text =
        replaced(text, "SUMS_PAIR", cat("sums_4x2_packed(w, columns, length, ", bits, ", sums);"));
    text = replaced(text, "SUMS_ONE", cat("sums_4x1_packed(w, x, length, ", bits, ", sums);"));
    const auto row = [&](const char* x, int which) {
      return cat("sum_row_packed(w, ",
                 x,
                 ", length, ",
                 bits,
                 ", start[0] - ",
                 offset,
                 " * total[",
                 which,
                 "])");
    };
    text = replaced(text, "ROW0", row(form.pair ? "x0" : "x", 0));
    text = replaced(text, "ROW1", row("x1", 1));
  } else {
    text = replaced(text, "  EXPAND_PAIR\n", "  expand_pair(columns, x0, x1, length);\n");
    text = replaced(text, "  EXPAND_ONE\n", "");
    text = replaced(text, " SHIFT0", "");
    text = replaced(text, " SHIFT1", "");
    text = replaced(text, "SUMS_PAIR", "sums_4x2(w, x0, x1, columns, length, sums);");
    text = replaced(text, "SUMS_ONE", "sums_4x1(w, x, length, sums);");
    text = replaced(text, "ROW0", cat("sum_row(w, ", form.pair ? "x0" : "x", ", length, *start)"));
    text = replaced(text, "ROW1", "sum_row(w, x1, length, *start)");
  }
  return text;
}

std::string pixel_loop(const Conv2dShape& s, int64_t step, Order order) {
  const int64_t pixels = s.oh() * s.ow();
  if (order == Order::kForward) return cat("  for (i = 0; i < ", pixels, "; i += ", step, ") {\n");
  return cat("  for (i = ", (pixels - 1) / step * step, "; i >= 0; i -= ", step, ") {\n");
}

std::string window_corner(const Conv2dShape& s, const std::string& pixel) {
  return cat("    const int32_t top = ",
             pixel,
             " / ",
             s.ow(),
             " * ",
             s.stride_h,
             " - ",
             s.pad_h,
             ", left = ",
             pixel,
             " % ",
             s.ow(),
             " * ",
             s.stride_w,
             " - ",
             s.pad_w,
             ";\n");
}

}  // namespace quantrain::c99
