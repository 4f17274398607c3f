#include "quant/export/c99/windows.hpp"

#include <algorithm>
#include <vector>

#include "quant/export/c99/products.hpp"
#include "quant/export/c99/text.hpp"

namespace quantrain::c99 {

StepSource step_source(const integer::QuantizedMaxPool2d& op, const std::string& id, Order order) {
  const kernels::Conv2dShape& s = op.shape;
  return {.text = fill("max_pool_step",
                       {{"ID", id}, {"EACH_PIXEL", loop("i", s.oh() * s.ow(), order)}},
                       window_values(s))};
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
  StepSource source;
  const bool differ = std::any_of(op.means.begin(), op.means.end(), [&](const auto& mean) {
    return !(mean.multiplier == op.means[0].multiplier);
  });
  if (differ) {
    source.text = table<int32_t>("int32_t", cat("count", id), count) +
                  table<int32_t>("int32_t", cat("multiplier", id), m0) +
                  table<int32_t>("uint8_t", cat("shift", id), shift);
    source.table_bytes = 9 * static_cast<int64_t>(count.size());
  }
  const kernels::Conv2dShape& s = op.shape;
  source.text += fill("avg_pool_step",
                      {{"ID", id},
                       {"MANY_COUNTS", differ},
                       {"M0", m0[0]},
                       {"SHIFT", shift[0]},
                       {"ZERO", op.zero_x},
                       {"Y_ZERO", op.y.zero_point},
                       {"LOW", op.y.lo},
                       {"HIGH", op.y.hi},
                       {"EACH_PIXEL", loop("i", s.oh() * s.ow(), order)}},
                      window_values(s));
  return source;
}

}  // namespace quantrain::c99
