#pragma once

#include "framework/kernels/conv_shape.hpp"
#include "framework/kernels/params.hpp"

namespace quantrain::kernels {

/// The windows of s, for kernels whose lanes run along the channels: pooling and depthwise
/// convolutions.
inline PoolShape pool_shape(const Conv2dShape& s) {
  return {.h = s.h,
          .w = s.w,
          .c = s.c,
          .oh = s.oh(),
          .ow = s.ow(),
          .kh = s.kh,
          .kw = s.kw,
          .stride_h = s.stride_h,
          .stride_w = s.stride_w,
          .pad_h = s.pad_h,
          .pad_w = s.pad_w,
          .dilation_h = s.dilation_h,
          .dilation_w = s.dilation_w,
          .padded_w = s.padded_w()};
}

}  // namespace quantrain::kernels
