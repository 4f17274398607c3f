#include <algorithm>

#include "framework/core/parallel.hpp"
#include "framework/kernels/integer.hpp"

namespace quantrain::kernels {

PackedWeightsS8::PackedWeightsS8(int64_t o, int64_t k, const int8_t* w)
    : PackedWeightsS8(Conv2dShape{.c = k, .o = o}, w) {}

PackedWeightsS8::PackedWeightsS8(const Conv2dShape& shape, const int8_t* w)
    : data_(shape.weight_elements()), sums_(shape.o) {
  std::copy_n(w, data_.size(), data_.data());
  const int64_t k = shape.reduction();
  for (int64_t o = 0; o < shape.o; ++o) {
    int32_t sum = 0;
    for (int64_t i = 0; i < k; ++i) sum += w[o * k + i];
    sums_[o] = sum;
  }
}

namespace {

template <class Store>
void gemm(int64_t m,
          int64_t k,
          const uint8_t* x,
          int32_t zero_x,
          const PackedWeightsS8& w,
          const int32_t* bias,
          const Store& store) {
  parallel_for(m, 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t o = 0; o < w.outputs(); ++o) {
        int32_t sum = bias != nullptr ? bias[o] : 0;
        for (int64_t j = 0; j < k; ++j) sum += w.data()[o * k + j] * (x[i * k + j] - zero_x);
        store(i * w.outputs() + o, o, sum);
      }
    }
  });
}

}  // namespace

void gemm_u8s8_s32(int64_t m,
                   int64_t k,
                   const uint8_t* x,
                   int32_t zero_x,
                   const PackedWeightsS8& w,
                   const int32_t* bias,
                   int32_t* acc) {
  gemm(m, k, x, zero_x, w, bias, [&](int64_t at, int64_t, int32_t sum) { acc[at] = sum; });
}

void gemm_u8s8_u8(int64_t m,
                  int64_t k,
                  const uint8_t* x,
                  int32_t zero_x,
                  const PackedWeightsS8& w,
                  const int32_t* bias,
                  const RequantizeU8& r,
                  uint8_t* y) {
  gemm(m, k, x, zero_x, w, bias, [&](int64_t at, int64_t o, int32_t sum) {
    y[at] = static_cast<uint8_t>(requantize(sum, {r.m0[o], r.shift[o]}, r.zero_point, r.lo, r.hi));
  });
}

}  // namespace quantrain::kernels
