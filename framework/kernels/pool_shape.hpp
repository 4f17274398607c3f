#pragma once

#include "framework/kernels/conv_shape.hpp"
#include "framework/kernels/params.hpp"

namespace quantrain::kernels {

/// What kernels with lanes along the channels take.
inline PoolShape pool_shape(const Conv2dShape& s) {
  return {s.h, s.w, s.c, s.oh(), s.ow(), s.kh, s.kw, s.stride_h, s.stride_w, s.pad_h, s.pad_w};
}

}  // namespace quantrain::kernels
