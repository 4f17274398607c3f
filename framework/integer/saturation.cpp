#include "framework/integer/saturation.hpp"

#include <atomic>
#include <string>
#include <vector>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/error.hpp"

namespace quantrain::integer {

void count_columns(std::span<const float> x,
                   const QParams& params,
                   const InputFeatures& features,
                   std::span<int64_t> columns) {
  size_t column = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool inside = gradient_passes(feature_value(x, i, features),
                                        params.scale[0],
                                        params.zero_point[0],
                                        params.type.qmin(),
                                        params.type.qmax());
    if (!inside) std::atomic_ref(columns[column]).fetch_add(1, std::memory_order_relaxed);
    if (++column == columns.size()) column = 0;
  }
}

void check_outside(Outside outside,
                   const Saturated& saturated,
                   const QParams& params,
                   const InputFeatures& features,
                   std::string_view where,
                   std::string_view name,
                   std::string_view advice) {
  const auto refuse = [&](int64_t count, int64_t values, int64_t column) {
    const Range range = params.float_range();
    throw DataError(where,
                    count,
                    " of ",
                    values,
                    " values ",
                    column < 0 ? "" : "of column " + std::to_string(column) + ' ',
                    "lie outside of [",
                    range.min,
                    ", ",
                    range.max,
                    "], what the codes of ",
                    name,
                    " mean",
                    features.empty() ? "" : " (after offset and scale)",
                    ": ",
                    advice);
  };
  if (refuses(outside, saturated.outside, saturated.values))
    refuse(saturated.outside, saturated.values, -1);
  if (!needs_columns(outside, saturated.samples)) return;
  const auto columns = std::ssize(saturated.columns);
  for (int64_t c = 0; c < columns; ++c) {
    const int64_t count = saturated.columns[static_cast<size_t>(c)];
    const int64_t values = saturated.values / columns;
    if (refuses_column(count, values)) refuse(count, values, c);
  }
}

void check_outside(Outside outside,
                   const EncodedValues& encoded,
                   const QParams& params,
                   const InputFeatures& features,
                   std::string_view where,
                   std::string_view name,
                   std::string_view advice) {
  if (encoded.outside == 0) return;
  std::vector<int64_t> columns;
  if (needs_columns(outside, encoded.samples)) {
    columns.resize(static_cast<size_t>(encoded.columns));
    count_columns(encoded.values, params, features, columns);
  }
  const Saturated saturated{.values = std::ssize(encoded.values),
                            .outside = encoded.outside,
                            .samples = encoded.samples,
                            .columns = columns};
  check_outside(outside, saturated, params, features, where, name, advice);
}

}  // namespace quantrain::integer
