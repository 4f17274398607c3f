#include "framework/kernels/conv.hpp"

#include <algorithm>

#include "framework/core/parallel.hpp"
#include "framework/kernels/conv_axis.hpp"
#include "framework/kernels/depthwise.hpp"
#include "framework/kernels/dispatch.hpp"
#include "framework/kernels/tiles.hpp"

// A convolution is a product whose left operand is never written down: row (n, i, j) of it
// consists, for each of the KH rows of the kernel, of KW * C contiguous values of the input, so a
// pointer for each output pixel says where they are. Pixels are sorted by which taps of the kernel
// lie inside the image, and only those are multiplied: nothing is padded. The gradient by data is
// the same walk over the output's gradient with the kernel upside down; with a stride the taps that
// a pixel was seen by are every stride-th, so pixels are sorted by residue too.
namespace quantrain::kernels {
namespace {

// Multiply-adds worth a task, and the most that one should have.
constexpr int64_t kTaskWork = 500000;
constexpr int64_t kMostTaskWork = 4000000;

/// y[n, i, j, :] = sum over taps (u, v) of the `channels` values of the source's pixel that the tap
/// sees times rows of b, [kh * kw * channels, columns].
struct Correlation {
  const float* x;
  int64_t n, h, w, pixel, channels;  // pixels are `pixel` values apart
  std::vector<AxisPart> lines, pixels;
  int64_t oh, ow, columns, kh, kw;
  const float* b;
  float* y;
  int64_t y_pixel;
};

/// A segment of the sum for each row of the kernel where its pixels are contiguous, else for each
/// tap.
int64_t find_segments(const Correlation& p,
                      const AxisPart& lines,
                      const AxisPart& pixels,
                      SegmentF32* segments) {
  const int64_t first = lines.phase_begin * p.kw + lines.phase_taps * pixels.phase_begin;
  const bool contiguous = p.channels == p.pixel;
  int64_t count = 0;
  for (int64_t u = 0; u < lines.taps; ++u) {
    for (int64_t v = 0; v < (contiguous ? std::min<int64_t>(1, pixels.taps) : pixels.taps); ++v) {
      const int64_t tap = (lines.first_tap + u) * pixels.phase_taps + pixels.first_tap + v;
      segments[count++] = {(u * p.w + v) * p.pixel, (first + tap) * p.channels};
    }
  }
  return count;
}

void correlate(const Correlation& p, const EpilogueF32& epilogue) {
  const auto kernel = table().tiles_f32;
  const int64_t k = p.kh * p.kw * p.channels;
  const int64_t all = p.n * p.oh;
  const int64_t line_work = p.ow * k * p.columns + 1;
  const int64_t task_work = std::clamp(all * line_work / 16, kTaskWork, kMostTaskWork);
  int64_t task_lines = task_work / line_work + 1;
  // Whole images where there are enough, so that there are many pixels of each sort.
  if (task_lines > p.oh || p.n >= 16) task_lines = (task_lines + p.oh - 1) / p.oh * p.oh;
  parallel_for(all, task_lines, [&](int64_t begin, int64_t end) {
    Buffer<const float*> from((end - begin) * p.ow);
    Buffer<float*> to((end - begin) * p.ow);
    Buffer<SegmentF32> segments(p.kh * p.kw);
    TilesF32 tiles{};
    tiles.segment = segments.data();
    tiles.a = from.data();
    tiles.a_step = 1;
    tiles.b_rows = k;
    tiles.c = to.data();
    for (const AxisPart& lines : p.lines) {
      for (const AxisPart& pixels : p.pixels) {
        tiles.m = 0;
        for (int64_t image = begin / p.oh; image * p.oh < end; ++image) {
          for (int64_t i = 0; i < lines.count; ++i) {
            const int64_t line = image * p.oh + lines.result + i * lines.result_step;
            if (line < begin || line >= end) continue;
            const int64_t row = image * p.h + lines.source + i * lines.source_step;
            const float* x = p.x + (row * p.w + pixels.source) * p.pixel;
            float* y = p.y + (line * p.ow + pixels.result) * p.y_pixel;
            for (int64_t j = 0; j < pixels.count; ++j) {
              from[tiles.m] = x + j * pixels.source_step * p.pixel;
              to[tiles.m++] = y + j * pixels.result_step * p.y_pixel;
            }
          }
        }
        if (tiles.m == 0) continue;
        tiles.segments = find_segments(p, lines, pixels, segments.data());
        tiles.length = p.channels == p.pixel ? pixels.taps * p.channels : p.channels;
        for (int64_t column = 0; column < p.columns; column += kPanelColumns) {
          tiles.n = std::min(p.columns - column, kPanelColumns);
          tiles.b = p.b + column * k;
          tiles.column = column;
          set_epilogue(tiles, epilogue, column, true, true);
          kernel(tiles);
        }
      }
    }
  });
}

/// Panels of one group's weights: w [o, kh, kw, gc] as [kh * kw * gc, o].
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

/// The same for the gradient by data: as [kh * kw * o, gc] in the order of backward_axis.
Buffer<float> pack_flipped_weights(const Conv2dShape& s, const float* w) {
  const int64_t o = s.group_o();
  const int64_t k = s.kh * s.kw * o;
  Buffer<float> packed(k * packed_columns(s.group_c()));
  for (int64_t u = 0; u < s.kh; ++u) {
    const PhaseTap line = backward_tap(u, s.kh, s.stride_h);
    for (int64_t v = 0; v < s.kw; ++v) {
      const PhaseTap pixel = backward_tap(v, s.kw, s.stride_w);
      const int64_t tap = line.phase_begin * s.kw + line.phase_taps * pixel.phase_begin +
                          line.index * pixel.phase_taps + pixel.index;
      for (int64_t column = 0; column < s.group_c(); column += kPanelColumns) {
        table().pack_f32({k,
                          tap * o,
                          (tap + 1) * o,
                          std::min(s.group_c() - column, kPanelColumns),
                          w + (u * s.kw + v) * s.group_c() + column,
                          s.reduction(),
                          1,
                          packed.data() + column * k});
      }
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
  Correlation p{};
  p.n = s.n, p.h = s.h, p.w = s.w, p.pixel = s.c, p.channels = s.group_c();
  p.lines = forward_axis(s.h, s.oh(), s.kh, s.stride_h, s.pad_h);
  p.pixels = forward_axis(s.w, s.ow(), s.kw, s.stride_w, s.pad_w);
  p.oh = s.oh(), p.ow = s.ow(), p.columns = s.group_o(), p.kh = s.kh, p.kw = s.kw;
  p.y_pixel = s.o;
  for (int64_t g = 0; g < s.groups; ++g) {
    const Buffer<float> b = pack_weights(s, w + g * s.group_o() * s.reduction());
    p.x = x + g * s.group_c();
    p.b = b.data();
    p.y = y + g * s.group_o();
    correlate(p, of_group(epilogue, g * s.group_o()));
  }
}

void conv2d_backward_data_f32(const Conv2dShape& s,
                              const float* grad_y,
                              const float* w,
                              float* grad_x) {
  if (s.x_elements() == 0) return;
  if (is_depthwise(s)) return depthwise_backward_data_f32(s, grad_y, w, grad_x);
  Correlation p{};
  p.n = s.n, p.h = s.oh(), p.w = s.ow(), p.pixel = s.o, p.channels = s.group_o();
  p.lines = backward_axis(s.oh(), s.h, s.kh, s.stride_h, s.pad_h);
  p.pixels = backward_axis(s.ow(), s.w, s.kw, s.stride_w, s.pad_w);
  p.oh = s.h, p.ow = s.w, p.columns = s.group_c(), p.kh = s.kh, p.kw = s.kw;
  p.y_pixel = s.c;
  for (int64_t g = 0; g < s.groups; ++g) {
    const Buffer<float> b = pack_flipped_weights(s, w + g * s.group_o() * s.reduction());
    p.x = grad_y + g * s.group_o();
    p.b = b.data();
    p.y = grad_x + g * s.group_c();
    correlate(p, {});
  }
}

}  // namespace quantrain::kernels
