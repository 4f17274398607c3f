#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/integer_vector.hpp"

// Chooses the layout of the weights of a product of bytes.
namespace quantrain::kernels::simd {

/// Where dot products of bytes are one instruction, products of this many rows are no slower with
/// bytes than with fields, which every tile of rows takes apart again. If they are given fields,
/// they unpack them to bytes first.
inline constexpr int64_t kRowsOfBytes = 24;
/// The fewest terms of a segment of bits, if bits are to save memory.
inline constexpr int64_t kSmallestBits = 32;

/// In which form dot_u8s8 takes the weights. Inlined, like the next function, because files of two
/// instruction sets may call it for the same architecture (Ints::Few).
template <class Arch>
inline QUANTRAIN_INLINE FewBits few_bits(const ProductNeeds& needs) {
  using I = Ints<Arch>;
  using Few = Ints<typename I::Few>;
  if constexpr (Few::kFewPanel > 0) {
    const int64_t fewest = needs.small ? kSmallestBits : I::kFewestBits;
    if (needs.binary && needs.terms >= fewest && Few::counts_bits()) return FewBits::kBits;
    const bool pay = I::kFields && needs.large && (I::kPairs || needs.rows < kRowsOfBytes) &&
                     needs.outputs >= Few::kFewPanel * Few::kLanes;
    if (Few::kFields && (needs.small || pay) && needs.weight_bits <= 4)
      return fields_of(needs.weight_bits);
    // One group of 4 would leave half of the pairs of groups empty.
    if (I::kNarrow && needs.weight_bits <= 6 && needs.terms > 4) return FewBits::kNarrow;
  }
  return FewBits::kNone;
}

/// The layout for few_bits(). A panel has half of the usual width if that leaves less of the last
/// panel empty. Panels of fields always have the usual width.
template <class Arch>
inline QUANTRAIN_INLINE PanelLayout few_bits_layout(const ProductNeeds& needs, FewBits few) {
  using I = Ints<Arch>;
  const int64_t whole = I::kFewPanel * I::kLanes;
  const bool narrows = few == FewBits::kNarrow || few == FewBits::kBits;
  const int64_t last = (needs.outputs - 1) % whole + 1;
  const bool half = narrows && last <= whole / 2;
  return {.width = half ? whole / 2 : whole,
          .pairs = false,
          .offset = few == FewBits::kBits ? 0 : I::kOffset,
          .few = few};
}

template <class Arch>
void panel_layout_u8s8(const ProductNeeds& needs, PanelLayout* layout) {
  using I = Ints<Arch>;
  using Few = typename I::Few;
  if constexpr (Ints<Few>::kFewPanel > 0) {
    if (const FewBits few = few_bits<Arch>(needs); few != FewBits::kNone) {
      *layout = few_bits_layout<Few>(needs, few);
      layout->unpacks_from = I::kPairs ? kNeverUnpacks : kRowsOfBytes;
      return;
    }
  }
  const int64_t vectors = (needs.outputs + I::kLanes - 1) / I::kLanes;
  const auto padded = [&](int64_t v) { return (vectors + v - 1) / v * v; };
  int64_t best = vectors < I::kMaxPanel ? vectors : I::kMaxPanel;
  // Chooses the width with the least padding, and the largest of equally good widths. A panel has
  // at least two vectors, unless the outputs fill only one, because a panel of one vector needs
  // more loads than products.
  for (int64_t v = best - 1; v >= 2; --v) {
    if (padded(v) < padded(best)) best = v;
  }
  *layout = {.width = (best < 1 ? 1 : best) * I::kLanes,
             .pairs = I::kPairs,
             .offset = I::kOffset,
             .planes = I::kPlanes,
             .octets = I::kOctets};
}

}  // namespace quantrain::kernels::simd
