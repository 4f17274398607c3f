#include "quant/export/c99/windows.hpp"

#include <algorithm>

#include "quant/export/c99/products.hpp"
#include "quant/export/c99/text.hpp"

namespace quantrain::c99 {
namespace {

using kernels::Conv2dShape;

// The loop over pixels up to `taps[0] ... taps[count - 1]`: the codes of the window inside the
// image.
std::string taps(const Conv2dShape& s, Order order) {
  const bool padded = s.pad_h > 0 || s.pad_w > 0;
  std::string text = cat("  const uint8_t *taps[", s.kh * s.kw, "];\n  int32_t i, u, v, c, n;\n");
  text += pixel_loop(s, 1, order) + "    int32_t count = 0;\n" + window_corner(s, "i");
  text += cat("    for (u = top; u < top + ",
              s.kh,
              "; ++u) {\n      for (v = left; v < left + ",
              s.kw,
              "; ++v) {\n");
  if (padded)
    text += cat("        if (u < 0 || u >= ", s.h, " || v < 0 || v >= ", s.w, ") continue;\n");
  text += cat("        taps[count++] = x + (u * ", s.w, " + v) * ", s.c, ";\n      }\n    }\n");
  return text;
}

}  // namespace

StepSource step_source(const integer::QuantizedMaxPool2d& op, const std::string& id, Order order) {
  const Conv2dShape& s = op.shape;
  StepSource source;
  source.text = cat("static void step",
                    id,
                    "(const uint8_t *x, uint8_t *y) {\n",
                    taps(s, order),
                    "    for (c = 0; c < ",
                    s.c,
                    "; ++c) {\n",
                    "      uint8_t largest = taps[0][c];\n",
                    "      for (n = 1; n < count; ++n)\n",
                    "        largest = taps[n][c] > largest ? taps[n][c] : largest;\n",
                    "      y[i * ",
                    s.c,
                    " + c] = largest;\n    }\n  }\n}\n");
  source.call = cat("step", id, "(X0, Y);");
  return source;
}

StepSource step_source(const integer::QuantizedAvgPool2d& op,
                       const std::string& id,
                       Order order,
                       Needs& needs) {
  needs.requantize_any = true;
  const Conv2dShape& s = op.shape;
  std::vector<int32_t> count, m0, shift;
  for (const kernels::MeanMultiplier& mean : op.means) {
    count.push_back(static_cast<int32_t>(mean.count));
    m0.push_back(mean.multiplier.m0);
    shift.push_back(mean.multiplier.shift);
  }
  StepSource source;
  std::string multiplier, find;
  if (op.means.size() == 1) {
    multiplier = cat(m0[0], ", ", shift[0]);
  } else {
    source.text = table<int32_t>("int32_t", cat("count", id), count) +
                  table<int32_t>("int32_t", cat("multiplier", id), m0) +
                  table<int32_t>("uint8_t", cat("shift", id), shift);
    source.table_bytes = 9 * static_cast<int64_t>(count.size());
    find = cat("    int32_t size = 0;\n");
    multiplier = cat("multiplier", id, "[size], shift", id, "[size]");
  }
  std::string begin = taps(s, order);
  if (!find.empty()) {
    begin = replaced(begin, "    int32_t count = 0;\n", "    int32_t count = 0, size = 0;\n");
    begin += cat("    while (count", id, "[size] != count) ++size;\n");
  }
  source.text += cat("static void step",
                     id,
                     "(const uint8_t *x, uint8_t *y) {\n",
                     begin,
                     "    for (c = 0; c < ",
                     s.c,
                     "; ++c) {\n",
                     "      int32_t sum = -",
                     op.zero_x,
                     " * count;\n      for (n = 0; n < count; ++n) sum += taps[n][c];\n",
                     "      y[i * ",
                     s.c,
                     " + c] = requantize_any(sum, ",
                     multiplier,
                     ", ",
                     op.y.zero_point,
                     ", ",
                     op.y.lo,
                     ", ",
                     op.y.hi,
                     ");\n    }\n  }\n}\n");
  source.call = cat("step", id, "(X0, Y);");
  return source;
}

}  // namespace quantrain::c99
