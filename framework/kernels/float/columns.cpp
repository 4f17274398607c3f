#include "framework/kernels/float/columns.hpp"

#include <algorithm>
#include <atomic>
#include <initializer_list>

#include "framework/core/buffer.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/float/elementwise.hpp"
#include "framework/kernels/float/grain.hpp"
#include "framework/kernels/float/partial_sums.hpp"
#include "framework/kernels/integer/channels.hpp"

namespace quantrain::kernels {
namespace {

constexpr int64_t kMostChunks = 64;

/// Rows of a chunk of reduce_rows().
int64_t reduced_grain(int64_t rows, int64_t columns) {
  return std::max(row_grain(columns), (rows + kMostChunks - 1) / kMostChunks);
}

/// Parameters of columns, repeated until they fill a whole number of vectors, and enough of them
/// for a long inner loop. So functions of single elements can treat a matrix as a flat array.
class Repeated {
 public:
  /// n: elements of the matrix. The parameters need not be longer than that.
  Repeated(int64_t n, int64_t columns, std::initializer_list<const float*> parameters) {
    constexpr int64_t kEnough = 256;
    period_ = std::min(round_up(kEnough, period_of(columns)), round_up(n, 16));
    values_ = Buffer<float>(period_ * std::ssize(parameters));
    float* to = values_.data();
    for (const float* const from : parameters) {
      for (int64_t left = period_; left > 0; left -= columns)
        to = std::copy_n(from, std::min(left, columns), to);
    }
  }
  int64_t period() const { return period_; }
  const float* operator[](int64_t parameter) const { return values_.data() + parameter * period_; }

 private:
  int64_t period_;
  Buffer<float> values_;
};

constexpr int64_t kSmallPart = 2048;
static_assert(kGrain % 16 == 0 && kSmallPart % 16 == 0);  // blocks start with a whole vector

/// Calls part(i, count) for parts of [0, n) that stay in the first-level cache between two passes.
template <class Part>
void for_small_parts(int64_t n, const Part& part) {
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) {
    for (; i < end; i += kSmallPart) part(i, std::min(end - i, kSmallPart));
  });
}

/// The part of a mask that starts with the bit of element i, a multiple of 8; null if there is
/// none.
template <class Byte>
Byte* part(Byte* mask, int64_t i) {
  return mask == nullptr ? nullptr : mask + i / 8;
}

/// Calls chunk(begin, end, sums) for the chunks of [0, rows). Each chunk writes `width` sums of its
/// own. A binary tree adds up these sums. The shape of the tree depends on `rows` and `columns`
/// alone. If there are no rows, the sums are 0.
template <class Chunk>
void reduce_rows(int64_t rows, int64_t columns, int64_t width, float* sums, const Chunk& chunk) {
  if (rows == 0) std::fill(sums, sums + width, 0.0f);
  const int64_t grain = reduced_grain(rows, columns);
  if (rows <= grain) {
    if (rows > 0) chunk(0, rows, sums);
    return;
  }
  const int64_t chunks = (rows + grain - 1) / grain;
  Buffer<float> partial(chunks * width);
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    chunk(begin, end, partial.data() + begin / grain * width);
  });
  add_up(chunks, width, partial.data());
  for (int64_t i = 0; i < width; ++i) sums[i] = partial[i];
}

/// The sum of the rows. prepare(begin, end) is called before the rows [begin, end) are read, and
/// may write them.
template <class Prepare>
void sum_rows(int64_t rows, int64_t columns, const float* x, float* y, const Prepare& prepare) {
  const auto kernel = float_table().column_sums_f32;
  reduce_rows(rows, columns, columns, y, [&](int64_t r, int64_t end, float* sums) {
    prepare(r, end);
    kernel(end - r, columns, x + r * columns, sums);
  });
}

constexpr auto kNothing = [](int64_t, int64_t) {};

/// Mean and variance, and the range unless min is null. `prepare` is that of sum_rows().
template <class Prepare>
void column_moments(int64_t rows,
                    int64_t columns,
                    const float* x,
                    float* mean,
                    float* variance,
                    float* min,
                    float* max,
                    const Prepare& prepare) {
  const auto count = static_cast<float>(rows);
  sum_rows(rows, columns, x, mean, prepare);
  for (int64_t c = 0; c < columns; ++c) mean[c] /= count;
  const auto kernel = float_table().column_square_sums_f32;
  const int64_t grain = reduced_grain(rows, columns);
  const int64_t chunks = min == nullptr ? 0 : (rows + grain - 1) / grain;
  Buffer<float> lows(chunks * columns);
  Buffer<float> highs(chunks * columns);
  reduce_rows(rows, columns, columns, variance, [&](int64_t r, int64_t end, float* sums) {
    const int64_t at = r / grain * columns;
    kernel(end - r,
           columns,
           x + r * columns,
           mean,
           sums,
           min == nullptr ? nullptr : lows.data() + at,
           min == nullptr ? nullptr : highs.data() + at);
  });
  for (int64_t c = 0; c < columns; ++c) variance[c] /= count;
  if (chunks == 0) return;
  std::copy_n(lows.data(), columns, min);
  std::copy_n(highs.data(), columns, max);
  for (int64_t at = columns; at < chunks * columns; at += columns) {
    for (int64_t c = 0; c < columns; ++c) {
      min[c] = std::min(min[c], lows[at + c]);
      max[c] = std::max(max[c], highs[at + c]);
    }
  }
}

}  // namespace

float sum_f32(int64_t n, const float* x) {
  float sum = 0.0f;
  const auto kernel = float_table().sum_f32;
  reduce_rows(
      n, 1, 1, &sum, [&](int64_t i, int64_t end, float* sums) { kernel(end - i, x + i, sums); });
  return sum;
}

void sum_rows_f32(int64_t rows, int64_t columns, const float* x, float* y) {
  sum_rows(rows, columns, x, y, kNothing);
}

void scale_rows_f32(int64_t rows, int64_t columns, const float* x, const float* factors, float* y) {
  const auto kernel = float_table().scale_rows_f32;
  parallel_for(rows, row_grain(columns), [&](int64_t r, int64_t end) {
    if (columns <= kGrain)
      return kernel(end - r, columns, x + r * columns, factors + r, y + r * columns);
    // A row of several blocks. Adding -0 changes no product, not even 0 or -0.
    for (; r < end; ++r) affine_f32(columns, x + r * columns, factors[r], -0.0f, y + r * columns);
  });
}

void row_dots_f32(int64_t rows, int64_t columns, const float* a, const float* b, float* dots) {
  const auto kernel = float_table().row_dots_f32;
  parallel_for(rows, row_grain(columns), [&](int64_t r, int64_t end) {
    if (columns <= kGrain)
      return kernel(end - r, columns, a + r * columns, b + r * columns, dots + r);
    Buffer<float> products(columns);  // a row of several blocks
    for (; r < end; ++r) {
      mul_f32(columns, a + r * columns, b + r * columns, products.data());
      dots[r] = sum_f32(columns, products.data());
    }
  });
}

void column_moments_f32(int64_t rows,
                        int64_t columns,
                        const float* x,
                        float* mean,
                        float* variance,
                        float* min,
                        float* max) {
  column_moments(rows, columns, x, mean, variance, min, max, kNothing);
}

void column_moments_s32_f32(int64_t rows,
                            int64_t columns,
                            const double* scale,
                            float* x,
                            float* mean,
                            float* variance,
                            float* min,
                            float* max) {
  const auto kernel = float_table().scale_columns_s32_f32;
  column_moments(rows, columns, x, mean, variance, min, max, [&](int64_t r, int64_t end) {
    kernel(end - r, columns, scale, x + r * columns);
  });
}

void column_grad_sums_f32(int64_t rows,
                          int64_t columns,
                          const float* x,
                          const float* mean,
                          const float* grad_y,
                          const uint8_t* mask,
                          float* sum_grad,
                          float* sum_grad_x) {
  const auto kernel = float_table().column_grad_sums_f32;
  Buffer<float> both(2 * columns);
  reduce_rows(rows, columns, 2 * columns, both.data(), [&](int64_t r, int64_t end, float* sums) {
    const int64_t i = r * columns;
    kernel(end - r, columns, x + i, mean, grad_y + i, part(mask, i), sums, sums + columns);
  });
  std::copy_n(both.data(), columns, sum_grad);
  std::copy_n(both.data() + columns, columns, sum_grad_x);
}

void column_affine_f32(int64_t rows,
                       int64_t columns,
                       const float* x,
                       const float* scale,
                       const float* shift,
                       float hi,
                       float* y,
                       uint8_t* mask) {
  const int64_t n = rows * columns;
  if (n == 0) return;
  const FloatTable& kernels = float_table();
  const Repeated p(n, columns, {scale, shift});
  for_small_parts(n, [&](int64_t i, int64_t count) {
    kernels.column_affine_f32(count, i % p.period(), p.period(), x + i, p[0], p[1], y + i);
    if (hi != 0.0f) kernels.relu_f32(count, y + i, hi, y + i, part(mask, i));
  });
}

bool quantize_columns_f32_u8(int64_t rows,
                             int64_t columns,
                             const float* x,
                             const float* scale,
                             const float* shift,
                             const QuantizeF32& q,
                             uint8_t* codes,
                             uint8_t* mask) {
  const int64_t n = rows * columns;
  if (n == 0) return true;
  std::atomic<bool> finite = true;
  const auto affine = float_table().column_affine_f32;
  const auto quantize = integer_table().quantize_f32_u8;
  const Repeated p(n, columns, {scale, shift});
  for_small_parts(n, [&](int64_t i, int64_t count) {
    float values[kSmallPart];
    affine(count, i % p.period(), p.period(), x + i, p[0], p[1], values);
    bool part_finite = true;
    quantize(count, values, q, codes + i, part(mask, i), &part_finite);
    if (!part_finite) finite.store(false, std::memory_order_relaxed);
  });
  return finite;
}

void batch_norm_backward_f32(int64_t rows, int64_t columns, const BatchNormBackwardF32& p) {
  const int64_t n = rows * columns;
  if (n == 0) return;
  const auto kernel = float_table().batch_norm_backward_f32;
  const Repeated repeated(n, columns, {p.mean, p.a, p.b, p.d});
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) {
    kernel(end - i,
           i % repeated.period(),
           repeated.period(),
           {.x = p.x + i,
            .grad_y = p.grad_y + i,
            .mask = part(p.mask, i),
            .mean = repeated[0],
            .a = repeated[1],
            .b = repeated[2],
            .d = repeated[3],
            .grad_x = p.grad_x + i});
  });
}

}  // namespace quantrain::kernels
