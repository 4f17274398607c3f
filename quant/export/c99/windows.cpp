#include "quant/export/c99/windows.hpp"

#include <vector>

#include "quant/export/c99/products.hpp"
#include "quant/export/c99/text.hpp"

namespace quantrain::c99 {
namespace {

using kernels::Conv2dShape;

// Fills in the placeholders that both pools share.
std::string fill_window(std::string text,
                        const Conv2dShape& s,
                        const std::string& id,
                        Order order) {
  return fill(fill(std::move(text), {{"CLIP", core("clip")}}),
              {{"ID", id},
               {"PIXELS", pixel_loop(s, 1, order)},
               {"CORNER", window_corner(s, "i")},
               {"HEIGHT", cat(s.h)},
               {"WIDTH", cat(s.w)},
               {"CHANNELS", cat(s.c)},
               {"KH", cat(s.kh)},
               {"KW", cat(s.kw)}});
}

}  // namespace

StepSource step_source(const integer::QuantizedMaxPool2d& op, const std::string& id, Order order) {
  return {.text = fill_window(core("max_pool_step"), op.shape, id, order),
          .call = cat("step", id, "(X0, Y);")};
}

StepSource step_source(const integer::QuantizedAvgPool2d& op,
                       const std::string& id,
                       Order order,
                       Needs& needs) {
  needs.requantize_any = true;
  std::vector<int32_t> count, m0, shift;
  for (const kernels::MeanMultiplier& mean : op.means) {
    count.push_back(static_cast<int32_t>(mean.count));
    m0.push_back(mean.multiplier.m0);
    shift.push_back(mean.multiplier.shift);
  }
  StepSource source{.text = {}, .call = cat("step", id, "(X0, Y);")};
  std::string find, multiplier = cat(m0[0], ", ", shift[0]);
  if (op.means.size() > 1) {
    source.text = table<int32_t>("int32_t", cat("count", id), count) +
                  table<int32_t>("int32_t", cat("multiplier", id), m0) +
                  table<int32_t>("uint8_t", cat("shift", id), shift);
    source.table_bytes = 9 * static_cast<int64_t>(count.size());
    find = cat("    int32_t size = 0;\n    while (count", id, "[size] != count) ++size;\n");
    multiplier = cat("multiplier", id, "[size], shift", id, "[size]");
  }
  source.text += fill_window(fill(core("avg_pool_step"),
                                  {{"FIND", find},
                                   {"MULTIPLIER", multiplier},
                                   {"ZERO", cat(op.zero_x)},
                                   {"Y_ZERO", cat(op.y.zero_point)},
                                   {"LOW", cat(op.y.lo)},
                                   {"HIGH", cat(op.y.hi)}}),
                             op.shape,
                             id,
                             order);
  return source;
}

}  // namespace quantrain::c99
