#include "framework/kernels/float/depthwise.hpp"

#include <algorithm>

#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/float/partial_sums.hpp"
#include "framework/kernels/float/tiles.hpp"
#include "framework/kernels/pool_shape.hpp"

// Depthwise convolutions: each group has one input and one output channel. Lanes run along the
// channels.
namespace quantrain::kernels {
namespace {

constexpr int64_t kTaskWork = 200000;
constexpr int64_t kMostTasks = 16;
// The weight gradient is summed in chunks. A chunk has at most kMostLines lines and at most
// kMostPixels pixels, but always at least one line. Within a chunk, each tap's sum is split into
// chains, which are added up one after the other.   docs/kernels.md, long sums
constexpr int64_t kMostLines = 256;
constexpr int64_t kMostPixels = 32768;

DepthwiseF32 depthwise(const Conv2dShape& s) {
  DepthwiseF32 p{};
  p.pool = pool_shape(s);
  return p;
}

}  // namespace

Buffer<float> taps_outermost(const Conv2dShape& s, const float* w) {
  const int64_t taps = s.kh * s.kw;
  Buffer<float> turned(taps * s.c);
  for (int64_t t = 0; t < taps; ++t) {
    for (int64_t c = 0; c < s.c; ++c) turned[t * s.c + c] = w[c * taps + t];
  }
  return turned;
}

void depthwise_f32(
    const Conv2dShape& s, const float* x, const float* w, float* y, const EpilogueF32& epilogue) {
  const auto kernel = float_table().depthwise_f32;
  DepthwiseF32 p = depthwise(s);
  TilesF32 ends{};
  set_epilogue(ends, epilogue, 0, true, true);
  p.bias = ends.bias;
  p.lo = ends.lo;
  p.hi = ends.hi;
  p.accumulate = ends.accumulate;
  parallel_for(s.n * s.oh(),
               kTaskWork / (s.ow() * s.kh * s.kw * s.c) + 1,
               [&](int64_t begin, int64_t end) { kernel(p, begin, end, x, w, y); });
}

void depthwise_backward_data_f32(const Conv2dShape& s,
                                 const float* grad_y,
                                 const float* w,
                                 float* grad_x) {
  const auto kernel = float_table().depthwise_backward_data_f32;
  const Buffer<float> turned = taps_outermost(s, w);
  const DepthwiseF32 p = depthwise(s);
  parallel_for(
      s.n * s.h, kTaskWork / (s.w * s.kh * s.kw * s.c) + 1, [&](int64_t begin, int64_t end) {
        kernel(p, begin, end, grad_y, turned.data(), grad_x);
      });
}

void depthwise_backward_weights_f32(const Conv2dShape& s,
                                    const float* x,
                                    const float* grad_y,
                                    float* grad_w) {
  const auto kernel = float_table().depthwise_backward_weights_f32;
  const DepthwiseF32 p = depthwise(s);
  const int64_t lines = s.n * s.oh();
  const int64_t taps = s.kh * s.kw;
  const int64_t task =
      std::max(kTaskWork / (s.ow() * taps * s.c) + 1, (lines + kMostTasks - 1) / kMostTasks);
  const int64_t chunk = std::min({task, kMostLines, std::max<int64_t>(1, kMostPixels / s.ow())});
  const int64_t chunks = (lines + chunk - 1) / chunk;
  Buffer<float> partial(chunks * taps * s.c);
  parallel_for(lines, chunk, [&](int64_t begin, int64_t end) {
    kernel(p, begin, end, x, grad_y, partial.data() + begin / chunk * taps * s.c);
  });
  add_up(chunks, taps * s.c, partial.data());
  for (int64_t c = 0; c < s.c; ++c) {
    for (int64_t t = 0; t < taps; ++t) grad_w[c * taps + t] = partial[t * s.c + c];
  }
}

}  // namespace quantrain::kernels
