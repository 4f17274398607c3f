#include "framework/kernels/float/partial_sums.hpp"

#include <algorithm>

#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/float/grain.hpp"

namespace quantrain::kernels {

namespace {

// This many columns are added up at a time, so that these columns of all parts stay in a fast
// cache.
constexpr int64_t kBlock = 256;

}  // namespace

void add_up_part(int64_t parts, int64_t n, float* partial, int64_t begin, int64_t end) {
  const auto add = float_table().add_f32;
  for (int64_t i = begin; i < end; i += kBlock) {
    const int64_t size = std::min(kBlock, end - i);
    for (int64_t step = 1; step < parts; step *= 2) {
      for (int64_t part = 0; part + step < parts; part += 2 * step) {
        float* const to = partial + part * n + i;
        add(size, to, to + step * n, to);
      }
    }
  }
}

void add_up(int64_t parts, int64_t n, float* partial) {
  const int64_t grain = std::max(kBlock, 2 * kGrain / std::max<int64_t>(parts, 1));
  parallel_for(
      n, grain, [&](int64_t begin, int64_t end) { add_up_part(parts, n, partial, begin, end); });
}

}  // namespace quantrain::kernels
