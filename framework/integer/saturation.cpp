#include "framework/integer/saturation.hpp"

#include <algorithm>
#include <atomic>
#include <ostream>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/buffer.hpp"
#include "framework/core/error.hpp"

namespace quantrain::integer {
namespace {

/// Part of a message.
struct Column {
  int64_t index = -1;  // -1: all columns

  friend std::ostream& operator<<(std::ostream& stream, const Column& column) {
    if (column.index >= 0) stream << " of column " << column.index;
    return stream;
  }
};

}  // namespace

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
  int64_t count = saturated.outside;
  int64_t values = saturated.values;
  Column column;
  if (!refuses(outside, count, values)) {
    if (!needs_columns(outside, saturated.samples) || saturated.columns.empty()) return;
    values /= std::ssize(saturated.columns);
    const auto found = std::find_if(saturated.columns.begin(),
                                    saturated.columns.end(),
                                    [&](int64_t own) { return refuses_column(own, values); });
    if (found == saturated.columns.end()) return;
    count = *found;
    column.index = found - saturated.columns.begin();
  }
  const Range range = params.float_range();
  throw DataError(where,
                  count,
                  " of ",
                  values,
                  " values",
                  column,
                  " lie outside of [",
                  range.min,
                  ", ",
                  range.max,
                  "], what the codes of ",
                  name,
                  " mean",
                  features.empty() ? "" : " (after offset and scale)",
                  ": ",
                  advice);
}

void check_outside(Outside outside,
                   const EncodedValues& encoded,
                   const QParams& params,
                   const InputFeatures& features,
                   std::string_view where,
                   std::string_view name,
                   std::string_view advice) {
  if (encoded.outside == 0) return;
  Buffer<int64_t> columns;
  if (needs_columns(outside, encoded.samples)) {
    columns = Buffer<int64_t>(encoded.columns);
    std::fill(columns.begin(), columns.end(), 0);
    count_columns(encoded.values, params, features, {columns.data(), columns.end()});
  }
  const Saturated saturated{.values = std::ssize(encoded.values),
                            .outside = encoded.outside,
                            .samples = encoded.samples,
                            .columns = {columns.data(), columns.end()}};
  check_outside(outside, saturated, params, features, where, name, advice);
}

}  // namespace quantrain::integer
