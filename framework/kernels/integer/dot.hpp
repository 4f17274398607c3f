#pragma once

#include "framework/kernels/dispatch/dispatch.hpp"

namespace quantrain::kernels {

/// Like kernels.dot_u8s8, but allows every shift: RequantizeU8::usual may be false.
/// Also unpacks panels of fields where PanelLayout::unpacks_from says so, one at a time, into
/// memory of the pool.
void dot_u8s8(const IntegerTable& kernels, const DotU8S8& p);

/// Unpacks `count` panels of fields, which are p.panel bytes apart. The result has the layout
/// p.layout.unpacked() and, in each of the p.segments segments, groups of 4 for p.terms terms.
void unpack_panels(const IntegerTable& kernels, const DotU8S8& p, int64_t count, int8_t* to);
/// Bytes of one unpacked panel.
int64_t unpacked_bytes(const PanelLayout& layout, int64_t segments, int64_t terms);

/// Bytes of the pool that a call of at most `rows` rows takes, whose sums have `segments` segments
/// of `terms` terms.
int64_t dot_scratch(const PanelLayout& layout, int64_t rows, int64_t segments, int64_t terms);

}  // namespace quantrain::kernels
