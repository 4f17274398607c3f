#include <string>

#include "quant/export/c99/layout.hpp"
#include "quant/export/c99/products.hpp"
#include "quant/export/c99/text.hpp"

// Assembles the product functions from their parts in core/.
namespace quantrain::c99 {
namespace {

// The C variables that requantization needs.
std::string setup(bool codes) {
  if (!codes) return {};
  return "  const int32_t *multiplier = p->multiplier;\n"
         "  const uint8_t *shift = p->shift;\n"
         "  const int32_t zero = p->zero, low = p->low, high = p->high;\n";
}

}  // namespace

std::string ProductForm::name() const {
  return cat(codes ? "product" : "sums",
             pair ? "_pair" : "_one",
             bits < 8 ? cat("_", bits, "bit") : std::string());
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
  // Unrolls the loop over the taps if there are few.
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

std::string product_function(const ProductForm& form, bool rows) {
  const bool packed = form.bits < 8;
  std::string text = core(form.pair ? "product_pair" : "product_one");
  text = replaced(text, "  ROWS\n", rows ? core(form.pair ? "pair_rows" : "one_rows") : "");
  text = replaced(text, "  BLOCKS\n", core(form.pair ? "pair_blocks" : "one_blocks"));
  // Replaces the placeholders with this form's constants, and removes the parts that this
  // form does not have.
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
  text = replaced(
      text, "    NEXT_BLOCK\n", form.codes ? "    multiplier += o;\n    shift += o;\n" : "");
  const auto store_block = [&](const char* sums, const char* y) {
    const std::string arguments =
        cat(", multiplier + o, shift + o, zero, low, high, ", y, " + o);");
    text = replaced(text,
                    cat("STORE_BLOCK(", sums, ", ", y, ")"),
                    form.codes ? cat("store_block(p, ", sums, arguments)
                               : cat("memcpy(", y, " + o, ", sums, ", 16 * sizeof *sums);"));
  };
  store_block("sums", form.pair ? "y0" : "y");
  store_block("sums + 16", "y1");
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
    text = replaced(text,
                    "SUMS_BLOCK",
                    cat("sums_16x",
                        form.pair ? "2" : "1",
                        "_packed(w + o * (length / ",
                        fields(form.bits),
                        "), ",
                        form.pair ? "columns" : "x",
                        ", length, ",
                        bits,
                        ", sums);"));
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
    text = replaced(text,
                    "SUMS_BLOCK",
                    form.pair ? "sums_16x2(w + o * length, x0, x1, columns, length, sums);"
                              : "sums_16x1(w + o * length, x, length, sums);");
    text = replaced(text, "ROW0", cat("sum_row(w, ", form.pair ? "x0" : "x", ", length, *start)"));
    text = replaced(text, "ROW1", "sum_row(w, x1, length, *start)");
  }
  return text;
}

}  // namespace quantrain::c99
