#include "quant/export/c99/products.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "quant/export/c99/layout.hpp"
#include "quant/export/c99/product_tables.hpp"
#include "quant/export/c99/text.hpp"

namespace quantrain::c99 {
namespace {

using integer::QuantizedProduct;
using kernels::Conv2dShape;

constexpr int64_t kShortestPacked = 32;
// Packed weights are at most 15 and codes at most 255, and 15 * 255 * 400000 < 2^31.
constexpr int64_t kLongestPacked = 400000;
// With these shifts, 32-bit arithmetic is enough for requantization: the low half of a product does
// not affect the result, and the zero point can be added before the shift.
bool is_short(int32_t shift) { return shift >= 33 && shift <= 52; }

// The C condition that the window at `top` and `left` lies in the image. If the window is larger
// than the image, the condition is "0", because compilers warn about comparisons that are never
// true together.
std::string is_inside(const Conv2dShape& s) {
  if (s.h < s.window_h() || s.w < s.window_w()) return "0";
  return cat(
      "top >= 0 && top <= ", s.h - s.window_h(), " && left >= 0 && left <= ", s.w - s.window_w());
}

// A loop's step from one tap to the next: "++i" or "i += 2".
std::string next_tap(const char* i, int64_t dilation) {
  return dilation == 1 ? cat("++", i) : cat(i, " += ", dilation);
}

// The C function that copies a window's codes to a patch. The window may reach beyond the image.
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
    // Adjacent taps are copied together.
    const int64_t pieces = s.dilation_w == 1 ? 1 : s.kw;
    const int64_t piece = s.kw / pieces * c;
    for (int64_t i = 0; i < s.kh; ++i) {
      for (int64_t j = 0; j < pieces; ++j) {
        inside += cat("    memcpy(patch + ",
                      i * s.kw * c + j * piece,
                      ", from + ",
                      (i * s.dilation_h * s.w + j * s.dilation_w) * s.c,
                      ", ",
                      piece,
                      ");\n");
      }
    }
  }
  if (whole_rows && !padded) return text + "  " + inside + "}\n";
  text += "  int32_t i, j;\n";
  if (whole_rows) text += cat("  if (", is_inside(s), ") {\n    ", inside, "    return;\n  }\n");
  text += cat("  for (i = top; i < top + ",
              s.window_h(),
              "; ",
              next_tap("i", s.dilation_h),
              ") {\n",
              "    for (j = left; j < left + ",
              s.window_w(),
              "; ",
              next_tap("j", s.dilation_w),
              ", patch += ",
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
    for (int64_t v = 0; v < s.kw; ++v) {
      const int64_t at = (u * s.dilation_h * s.w + v * s.dilation_w) * s.c;
      inside += cat("      taps[", u * s.kw + v, "] = at + ", at, ";\n");
    }
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
               {"WINDOW_HEIGHT", cat(s.window_h())},
               {"WINDOW_WIDTH", cat(s.window_w())},
               {"NEXT_U", next_tap("u", s.dilation_h)},
               {"NEXT_V", next_tap("v", s.dilation_w)},
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

  // The lines that copy the codes of pixel `pixel` to patch number `slot`.
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
  // If the number of pixels is odd, the last pixel is computed twice.
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

}  // namespace

bool any_shift(const integer::QuantizedProduct& product) {
  if (!product.output) return false;
  const auto& shift = product.output->shift;
  return std::any_of(shift.begin(), shift.end(), [](int32_t s) { return !is_short(s); });
}

bool ProductStep::contiguous() const {
  const bool padded = shape.pad_h > 0 || shape.pad_w > 0;
  const bool side_by_side = shape.window_w() == shape.kw && shape.window_h() == shape.kh;
  return shape.groups == 1 && !padded && side_by_side && (shape.kh == 1 || shape.kw == shape.w);
}

int ProductStep::stored_bits(const Settings& settings) const {
  if (!settings.pack_weights || depthwise() || product->weight_bits > 4) return 8;
  // For a short sum, padding to whole words costs more than packing saves.
  if (length() < kShortestPacked || length() > kLongestPacked) return 8;
  const int bits = product->weight_bits > 2 ? 4 : 2;
  // A sum starts at a value that contains the bias. Before the first product, the C core subtracts
  // the offset of packed weights times the sum of the codes. The difference must fit into 32 bits.
  // In a converted network, a bias can be too large for this only if the sum has more than about
  // 263,000 products of 4-bit weights.
  const int64_t reach = 2 * 255 * (int64_t{1} << (bits - 1)) * length();
  const int64_t most = std::numeric_limits<int32_t>::max() - reach;
  for (const int32_t bias : product->bias) {
    if (std::abs(int64_t{bias}) > most) return 8;
  }
  return bits;
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

StepSource step_source(const ProductStep& step,
                       const std::string& id,
                       Order order,
                       const Settings& settings,
                       Needs& needs) {
  const int bits = step.stored_bits(settings);
  const bool codes = step.product->output.has_value();
  if (codes) (any_shift(*step.product) ? needs.requantize_any : needs.requantize) = true;
  StepSource source;
  source.text = product_tables(step, id, settings, &source.table_bytes);
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
