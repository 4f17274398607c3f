#include "quant/export/c99/products.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "quant/export/c99/layout.hpp"
#include "quant/export/c99/product_tables.hpp"

namespace quantrain::c99 {
namespace {

using integer::has_padding;
using integer::QuantizedProduct;
using kernels::Conv2dShape;

// Packed weights are at most 15 and codes at most 255, and 15 * 255 * 400000 < 2^31.
constexpr int64_t kLongestPacked = 400000;
// With these shifts, 32-bit arithmetic is enough for requantization: the low half of a product does
// not affect the result, and the zero point can be added before the shift.
bool is_short(int32_t shift) { return shift >= 33 && shift <= 52; }

// Whether a window fits into the image. If not, C code that asks whether a window lies in the image
// is left out: compilers warn about comparisons that are never true together.
bool fits(const Conv2dShape& s) { return s.h >= s.window_h() && s.w >= s.window_w(); }

// The C function that copies a window's codes to a patch. The window may reach beyond the image.
std::string patch_function(const ProductStep& step, const std::string& id) {
  const Conv2dShape& s = step.shape;
  const bool whole_rows = s.groups == 1;
  std::string rows;
  if (whole_rows) {
    // Adjacent taps are copied together.
    const int64_t pieces = s.dilation_w == 1 ? 1 : s.kw;
    const int64_t piece = s.kw / pieces * s.c;
    for (int64_t i = 0; i < s.kh; ++i) {
      for (int64_t j = 0; j < pieces; ++j) {
        rows += fill("PATCH_ROWS",
                     {{"TO", i * s.kw * s.c + j * piece},
                      {"FROM", (i * s.dilation_h * s.w + j * s.dilation_w) * s.c},
                      {"BYTES", piece}});
      }
    }
  }
  const std::vector<Named> window = window_values(s);
  if (whole_rows && !has_padding(s))
    return fill("patch_inside", {{"ID", id}, {"PATCH_ROWS", rows}}, window);
  return fill("patch",
              {{"ID", id},
               {"FITS", whole_rows && fits(s)},
               {"PATCH_ROWS", rows},
               {"PADDED", has_padding(s)},
               {"GROUP_CHANNELS", s.group_c()},
               {"BLANK", step.product->zero_x}},
              window);
}

DepthwiseForm depthwise_form(const ProductStep& step) {
  return {.codes = step.product->output.has_value(), .taps = step.length()};
}

std::string output_type(const ProductStep& step) {
  return step.product->output ? "uint8_t" : "int32_t";
}

std::string depthwise_step(const ProductStep& step, const std::string& id, Order order) {
  const Conv2dShape& s = step.shape;
  std::string taps;
  for (int64_t u = 0; u < s.kh; ++u) {
    for (int64_t v = 0; v < s.kw; ++v) {
      taps += fill(
          "DEPTHWISE_TAPS",
          {{"TAP", u * s.kw + v}, {"OFFSET", (u * s.dilation_h * s.w + v * s.dilation_w) * s.c}});
    }
  }
  std::vector<Named> shared = window_values(s);
  shared.insert(shared.end(), {{"FITS", fits(s)}, {"BLANK", step.product->zero_x}});
  return fill(has_padding(s) ? "depthwise_step_padded" : "depthwise_step",
              {{"ID", id},
               {"OUTPUT", output_type(step)},
               {"TAPS", s.kh * s.kw},
               {"EACH_PIXEL", loop("i", step.pixels(), order)},
               {"DEPTHWISE_TAPS", taps},
               {"FUNCTION", depthwise_form(step).name()}},
              shared);
}

// How a step reads the codes of a pixel, and what it needs in the scratch for that.
struct Patches {
  int64_t length;  ///< codes of a patch, rounded up to whole words of weights, or of codes (binary)
  bool pair;       ///< two pixels at a time
  bool direct;     ///< reads the input; no patches
  bool binary;     ///< packs the codes to bits
  int64_t columns() const {
    if (binary) return (pair ? 2 : 1) * round_up(length, 32) / 8;
    return pair ? 4 * length : 0;
  }
  int64_t bytes() const { return direct ? 0 : (pair ? 2 : 1) * length; }
};

Patches patches(const ProductStep& step, const Settings& settings) {
  const int bits = step.stored_bits(settings);
  const int64_t quantum = bits < 8 && !step.binary(settings) ? fields(bits) : 4;
  return {.length = round_up(step.length(), quantum),
          .pair = step.pixels() > 1,
          .direct = step.contiguous() && step.length() % quantum == 0,
          .binary = step.binary(settings)};
}

ProductForm product_form(const ProductStep& step, const Settings& settings) {
  const bool pair = step.pixels() > 1, binary = step.binary(settings);
  const int64_t words = round_up(step.length(), 32) / 32;
  return {.pair = pair,
          .codes = step.product->output.has_value(),
          .bits = step.stored_bits(settings),
          .binary = binary,
          .thresholds = step.thresholds(settings),
          .words = binary && pair && words <= 2 ? static_cast<int>(words) : 0};
}

std::string product_pixels(const ProductStep& step,
                           const std::string& id,
                           Order order,
                           const Settings& settings) {
  const Conv2dShape& s = step.shape;
  const Patches p = patches(step, settings);
  std::vector<Named> shared = window_values(s);
  const bool odd = step.pixels() % 2 == 1;
  shared.insert(shared.end(),
                {{"COLUMNS", p.columns()},
                 {"EACH_PIXEL", loop("i", step.pixels(), order, 2)},
                 {"PIXELS", step.pixels()},
                 {"ODD", odd},  // the last pixel is computed twice
                 {"NEXT", odd ? "next" : "(i + 1)"},
                 {"OUTPUTS", s.o},
                 {"LENGTH", p.length},
                 {"UNIT", s.stride_h == 1 && s.stride_w == 1 && s.kh == 1 && s.kw == 1}});
  const std::string patch = step.contiguous() ? "" : patch_function(step, id);
  return patch + fill(p.pair ? "product_pairs" : "product_pixel",
                      {{"ID", id},
                       {"OUTPUT", output_type(step)},
                       {"FUNCTION", product_form(step, settings).name()},
                       {"PATCHES", !p.direct},
                       {"PATCH_BYTES", p.bytes()},
                       {"ROUNDED_UP", p.length > step.length()},
                       {"WINDOWS", !step.contiguous()},
                       {"GROUPED", s.groups > 1},
                       {"GROUPS", s.groups},
                       {"GROUP_CHANNELS", s.group_c()},
                       {"GROUP_OUTPUTS", s.group_o()},
                       {"COUNT", step.length()}},
                      shared);
}

}  // namespace

bool any_shift(const integer::QuantizedProduct& product) {
  if (!product.output) return false;
  const auto& shift = product.output->shift;
  return std::any_of(shift.begin(), shift.end(), [](int32_t s) { return !is_short(s); });
}

bool ProductStep::contiguous() const {
  const bool side_by_side = shape.window_w() == shape.kw && shape.window_h() == shape.kh;
  return shape.groups == 1 && !has_padding(shape) && side_by_side &&
         (shape.kh == 1 || shape.kw == shape.w);
}

int ProductStep::stored_bits(const Settings& settings) const {
  if (!settings.pack_weights || depthwise() || product->weight.bits() > 4) return 8;
  if (binary(settings)) return 1;
  // Four weights of any number of bits take a word.
  if (length() <= 4 || length() > kLongestPacked) return 8;
  const int bits = product->weight.bits() == 3 ? 4 : product->weight.bits();
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

bool ProductStep::binary(const Settings& settings) const {
  return settings.pack_weights && !depthwise() && product->is_binary();
}

bool ProductStep::thresholds(const Settings& settings) const {
  return binary(settings) && product->output && product->output->y.hi - product->output->y.lo == 1;
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
  if (step.depthwise()) return has_padding(step.shape) ? step.shape.c : 0;
  const Patches p = patches(step, settings);
  return p.columns() + p.bytes();
}

StepSource step_source(const ProductStep& step,
                       const std::string& id,
                       Order order,
                       const Settings& settings,
                       Needs& needs) {
  if (step.product->output && !step.thresholds(settings))
    (any_shift(*step.product) ? needs.requantize_any : needs.requantize) = true;
  StepSource source;
  source.text = product_tables(step, id, settings, needs, &source.table_bytes);
  if (step.depthwise()) {
    needs.depthwise[depthwise_form(step)] |= step.shape.c % 4 != 0;
    source.text += depthwise_step(step, id, order);
    if (has_padding(step.shape)) source.local = "(uint8_t *)";
    return source;
  }
  needs.products[product_form(step, settings)] |= step.shape.group_o() % 4 != 0;
  source.text += product_pixels(step, id, order, settings);
  source.local = "";
  return source;
}

std::vector<Named> window_values(const Conv2dShape& s) {
  return {{"HEIGHT", s.h},
          {"WIDTH", s.w},
          {"CHANNELS", s.c},
          {"ROW", s.w * s.c},
          {"DOWN", s.stride_h * s.w},
          {"OW", s.ow()},
          {"KH", s.kh},
          {"KW", s.kw},
          {"STRIDE_H", s.stride_h},
          {"STRIDE_W", s.stride_w},
          {"PAD_H", s.pad_h},
          {"PAD_W", s.pad_w},
          {"DILATION_H", s.dilation_h},
          {"DILATION_W", s.dilation_w},
          {"WINDOW_HEIGHT", s.window_h()},
          {"WINDOW_WIDTH", s.window_w()},
          {"LAST_TOP", s.h - s.window_h()},
          {"LAST_LEFT", s.w - s.window_w()}};
}

std::string ProductForm::name() const {
  if (binary)
    return cat(thresholds ? "bits"
               : codes    ? "bits_codes"
                          : "bits_sums",
               pair ? "_pair" : "_one",
               words > 0 ? cat("_", words) : std::string());
  return cat(codes ? "product" : "sums",
             pair ? "_pair" : "_one",
             bits < 8 ? cat("_", bits, "bit") : std::string());
}

std::string DepthwiseForm::name() const {
  return cat(codes ? "depthwise_" : "depthwise_sums_", taps);
}

std::string product_function(const ProductForm& form, bool rows) {
  const std::string output = form.codes ? "uint8_t" : "int32_t";
  if (form.binary && form.pair)
    return fill("bits_pair",
                {{"NAME", form.name()},
                 {"OUTPUT", output},
                 {"CODES", form.codes},
                 {"THRESHOLDS", form.thresholds},
                 {"FEW_WORDS", form.words > 0},
                 {"TWO_WORDS", form.words == 2}});
  if (form.binary)
    return fill("bits_one",
                {{"NAME", form.name()},
                 {"OUTPUT", output},
                 {"CODES", form.codes},
                 {"THRESHOLDS", form.thresholds}});
  const bool packed = form.bits < 8;
  return fill(form.pair ? "product_pair" : "product_one",
              {{"NAME", form.name()},
               {"OUTPUT", output},
               {"WEIGHT", packed ? "uint32_t" : "int8_t"},
               {"CODES", form.codes},
               {"PACKED", packed},
               {"SINGLE_ROWS", rows},
               {"BITS", form.bits},
               {"FIELDS", fields(form.bits)},
               {"EXCESS", 1 << (form.bits - 1)},
               {"FACTOR", form.bits == 1 ? 2 : 1}});
}

std::string depthwise_function(const DepthwiseForm& form, bool rows) {
  const bool few = form.taps <= 16;  // unrolls the loop over the taps
  std::string taps;
  for (int64_t t = 0; few && t < form.taps; ++t) taps += cat("TAP(", t, ")\n");
  return fill("depthwise",
              {{"NAME", form.name()},
               {"OUTPUT", form.codes ? "uint8_t" : "int32_t"},
               {"TAPS", form.taps},
               {"FEW_TAPS", few},
               {"EACH_TAP", taps},
               {"CODES", form.codes},
               {"SINGLE_ROWS", rows}});
}

}  // namespace quantrain::c99
