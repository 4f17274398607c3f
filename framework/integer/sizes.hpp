#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "framework/kernels/conv_shape.hpp"

namespace quantrain::integer {

/// Largest number of elements of a value in one sample. With this limit, no memory size of a batch
/// can overflow.
inline constexpr int64_t kMostElements = int64_t{1} << 30;

/// Throws: ShapeError naming `where` unless all extents are positive and their product is at most
/// kMostElements.
void check_size(std::string_view where, std::initializer_list<int64_t> extents);

/// Largest extent of a convolution or pool. A product of three extents fits in 64 bits.
inline constexpr int64_t kMostExtent = int64_t{1} << 20;
/// Checks the extents of a convolution or pool of one sample.
/// Throws: ShapeError naming `where` if an extent is not in [1, kMostExtent], a padding of a side
/// is not in [0, kMostExtent], the groups do not divide the channels, the window does not fit in
/// the padded image, shape.n is not 1, or the padded image or the output has more than
/// kMostElements elements.
void check_window(std::string_view where, const kernels::Conv2dShape& shape);
/// Largest number of elements that the windows of a pool may read in one sample. Reading this many
/// takes about a minute.
inline constexpr int64_t kMostPoolReads = int64_t{1} << 36;
/// Checks the extents of a pool like check_window(). Also checks that c = o = groups, the dilation
/// is 1, each window has an element of the image, and at most kMostPoolReads elements are read. A
/// convolution needs no such limit, because its weights bound its work.
void check_pool(std::string_view where, const kernels::Conv2dShape& shape);

inline kernels::Conv2dShape with_batch(kernels::Conv2dShape shape, int64_t n) {
  shape.n = n;
  return shape;
}

inline bool has_padding(const kernels::Conv2dShape& s) {
  return s.pad_h > 0 || s.pad_w > 0 || s.end_h > 0 || s.end_w > 0;
}
inline bool is_dilated(const kernels::Conv2dShape& s) {
  return s.dilation_h != 1 || s.dilation_w != 1;
}

void describe_window(auto& s, auto& fields) {
  fields("h", s.h);
  fields("w", s.w);
  fields("c", s.c);
  fields("o", s.o);
  fields("kh", s.kh);
  fields("kw", s.kw);
  fields("stride_h", s.stride_h);
  fields("stride_w", s.stride_w);
  fields("pad_h", s.pad_h);
  fields("pad_w", s.pad_w);
  fields("groups", s.groups);
  fields.optional("end_h", s.end_h, 0);
  fields.optional("end_w", s.end_w, 0);
}

}  // namespace quantrain::integer
