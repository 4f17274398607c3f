#include "framework/kernels/conv.hpp"

#include <algorithm>
#include <cstring>

#include "framework/core/parallel.hpp"
#include "framework/kernels/conv_band.hpp"
#include "framework/kernels/dispatch.hpp"
#include "framework/kernels/tiles.hpp"

// A convolution is a product whose left operand is never written down: row (n, i, j) of it
// consists, for each of the KH rows of the kernel, of KW * C contiguous values of the input, so a
// pointer for each output pixel says where they are. Only what needs padding, zeros in between
// (strided gradients) or a group's own channels is copied, one band of rows at a time.
namespace quantrain::kernels {
namespace {

// Multiply-adds worth a task, and the most that one should have.
constexpr int64_t kTaskWork = 500000;
constexpr int64_t kMostTaskWork = 4000000;

/// y[n, i, j, :] = sum over (u, v) of windows of `source` times the panels of b, [kh * kw *
/// source.channels, columns].
struct Correlation {
  BandSource source;
  int64_t n, oh, ow, columns;
  const float* b;
  float* y;
  int64_t y_stride;
};

void correlate(const Correlation& p, const EpilogueF32& epilogue) {
  const auto kernel = table().tiles_f32;
  const BandSource& source = p.source;
  const int64_t k = source.kh * source.kw * source.channels;
  const int64_t lines = p.n * p.oh;
  const int64_t line_work = p.ow * k * p.columns + 1;
  const int64_t task_work = std::clamp(lines * line_work / 16, kTaskWork, kMostTaskWork);
  parallel_for(lines, task_work / line_work + 1, [&](int64_t begin, int64_t end) {
    Buffer<const float*> pixels((end - begin) * p.ow);
    const Band band(source, p.oh, p.ow, begin, end);
    for (int64_t line = begin; line < end; ++line) {
      const float* const first = band.line(line);
      for (int64_t j = 0; j < p.ow; ++j)
        pixels[(line - begin) * p.ow + j] = first + j * band.pixel_step();
    }
    TilesF32 tiles{};
    tiles.m = (end - begin) * p.ow;
    tiles.segments = source.kh;
    tiles.length = source.kw * source.channels;
    tiles.a = pixels.data();
    tiles.a_step = 1;
    tiles.a_segment = band.row_step();
    tiles.c_stride = p.y_stride;
    for (int64_t column = 0; column < p.columns; column += kPanelColumns) {
      tiles.n = std::min(p.columns - column, kPanelColumns);
      tiles.b = p.b + column * k;
      tiles.c = p.y + begin * p.ow * p.y_stride + column;
      set_epilogue(tiles, epilogue, column, true, true);
      kernel(tiles);
    }
  });
}

/// Panels of one group's weights: w [o, kh, kw, gc] as [kh * kw * gc, o]; flipped for the gradient
/// by data, as [kh * kw * o, gc] with the kernel upside down.
Buffer<float> pack_weights(const Conv2dShape& s, const float* w) {
  const int64_t k = s.reduction();
  Buffer<float> packed(k * packed_columns(s.group_o()));
  for (int64_t column = 0; column < s.group_o(); column += kPanelColumns) {
    table().pack_f32({k,
                      0,
                      k,
                      std::min(s.group_o() - column, kPanelColumns),
                      w + column * k,
                      1,
                      k,
                      packed.data() + column * k});
  }
  return packed;
}

Buffer<float> pack_flipped_weights(const Conv2dShape& s, const float* w) {
  const int64_t taps = s.kh * s.kw;
  const int64_t o = s.group_o();
  Buffer<float> packed(taps * o * packed_columns(s.group_c()));
  for (int64_t column = 0; column < s.group_c(); column += kPanelColumns) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      table().pack_f32({taps * o,
                        tap * o,
                        (tap + 1) * o,
                        std::min(s.group_c() - column, kPanelColumns),
                        w + (taps - 1 - tap) * s.group_c() + column,
                        s.reduction(),
                        1,
                        packed.data() + column * taps * o});
    }
  }
  return packed;
}

EpilogueF32 of_group(EpilogueF32 epilogue, int64_t first_column) {
  if (epilogue.bias != nullptr) epilogue.bias += first_column;
  return epilogue;
}

}  // namespace

void conv2d_f32(
    const Conv2dShape& s, const float* x, const float* w, float* y, const EpilogueF32& epilogue) {
  if (s.y_elements() == 0) return;
  if (is_depthwise(s)) return depthwise_f32(s, x, w, y, epilogue);
  for (int64_t g = 0; g < s.groups; ++g) {
    const Buffer<float> b = pack_weights(s, w + g * s.group_o() * s.reduction());
    correlate({forward_source(s, x, g),
               s.n,
               s.oh(),
               s.ow(),
               s.group_o(),
               b.data(),
               y + g * s.group_o(),
               s.o},
              of_group(epilogue, g * s.group_o()));
  }
}

void conv2d_backward_data_f32(const Conv2dShape& s,
                              const float* grad_y,
                              const float* w,
                              float* grad_x) {
  if (s.x_elements() == 0) return;
  if (is_depthwise(s)) return depthwise_backward_data_f32(s, grad_y, w, grad_x);
  for (int64_t g = 0; g < s.groups; ++g) {
    const Buffer<float> b = pack_flipped_weights(s, w + g * s.group_o() * s.reduction());
    BandSource source{};
    source.x = grad_y + g * s.group_o();
    source.h = s.oh();
    source.w = s.ow();
    source.pixel = s.o;
    source.channels = s.group_o();
    source.insert_h = s.stride_h;
    source.insert_w = s.stride_w;
    source.pad_h = s.kh - 1 - s.pad_h;
    source.pad_w = s.kw - 1 - s.pad_w;
    source.kh = s.kh;
    source.kw = s.kw;
    correlate({source, s.n, s.h, s.w, s.group_c(), b.data(), grad_x + g * s.group_c(), s.c}, {});
  }
}

}  // namespace quantrain::kernels
