#include "framework/kernels/float/grain.hpp"
#include "framework/kernels/float/product.hpp"

namespace quantrain::kernels {

PackedMatrixF32::PackedMatrixF32(int64_t k, int64_t n, const MatrixF32& b)
    : k_(k), n_(n), data_(k * packed_columns(n)) {
  pack(b);
}

PackedMatrixF32::PackedMatrixF32(int64_t k, int64_t n, const CodeMatrix& b)
    : k_(k), n_(n), data_(k * packed_columns(n)) {
  pack(b);
}

template <class B>
void PackedMatrixF32::pack(const B& b) {
  const int64_t panels = (n_ + kPanelColumns - 1) / kPanelColumns;
  const int64_t grain = row_grain(kPanelColumns * k_);
  parallel_for(panels, grain, [&](int64_t i, int64_t end) {
    Buffer<float> floats = scratch(b, k_);
    for (; i < end; ++i) {
      const int64_t column = i * kPanelColumns;
      const int64_t columns = std::min(n_ - column, kPanelColumns);
      float* const to = data_.data() + column * k_;
      const auto pack_block = [&](Terms k, bool, bool) {
        const MatrixF32 from = rows_of(b, k, column, columns, floats.data());
        pack_rows(from, k.count(), columns, to + k.begin * packed_columns(columns));
      };
      const int64_t chunk = chunk_terms(k_);
      for (int64_t begin = 0; begin < k_; begin += chunk)
        for_blocks({begin, std::min(k_, begin + chunk)}, kLongestChain, pack_block);
    }
  });
}

}  // namespace quantrain::kernels
