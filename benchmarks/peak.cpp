#include "benchmarks/implementations.hpp"
#include "framework/core/cpu.hpp"
#include "framework/core/parallel.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Loops that run at the peak rate of a core: independent chains of multiply-adds in registers,
// enough of them to hide the latency. An attribute of each loop selects its instruction set.
namespace quantrain::benchmarks {
namespace {

constexpr int kChains = 12;
constexpr int64_t kRounds = 20000;
constexpr int64_t kBlocksPerThread = 8;

struct Loop {
  void (*run)() = nullptr;
  int64_t operations = 0;  ///< in one step of a chain; a step is one or two instructions
};

#if defined(__x86_64__)
template <class T>
void use(const T& result) {
  asm volatile("" : : "r"(&result) : "memory");
}

[[gnu::target("avx512f")]] void fma_avx512() {
  const __m512 half = _mm512_set1_ps(0.5f);
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = half;
  for (int64_t round = 0; round < kRounds; ++round) {
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, half, half);
  }
  __m512 total = half;
  for (const __m512& sum : sums) total = _mm512_add_ps(total, sum);
  use(total);
}

[[gnu::target("avx2,fma")]] void fma_avx2() {
  const __m256 half = _mm256_set1_ps(0.5f);
  __m256 sums[kChains];
  for (__m256& sum : sums) sum = half;
  for (int64_t round = 0; round < kRounds; ++round) {
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, half, half);
  }
  __m256 total = half;
  for (const __m256& sum : sums) total = _mm256_add_ps(total, sum);
  use(total);
}

[[gnu::target("avx512f,avx512vnni")]] void dot_vnni() {
  const __m512i ones = _mm512_set1_epi32(0x01010101);
  __m512i sums[kChains];
  for (__m512i& sum : sums) sum = ones;
  for (int64_t round = 0; round < kRounds; ++round) {
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, ones, ones);
  }
  __m512i total = ones;
  for (const __m512i& sum : sums) total = _mm512_add_epi32(total, sum);
  use(total);
}

// Without VNNI, a dot product multiplies int16. Each product in this loop has the current sum as a
// factor. With two constant factors, the compiler would compute the product only once, before the
// loop.
[[gnu::target("avx512f,avx512bw")]] void dot_avx512bw() {
  const __m512i ones = _mm512_set1_epi32(0x00010001);
  __m512i sums[kChains];
  for (__m512i& sum : sums) sum = ones;
  for (int64_t round = 0; round < kRounds; ++round) {
    for (__m512i& sum : sums) sum = _mm512_add_epi32(ones, _mm512_madd_epi16(sum, ones));
  }
  __m512i total = ones;
  for (const __m512i& sum : sums) total = _mm512_add_epi32(total, sum);
  use(total);
}

[[gnu::target("avx2")]] void dot_avx2() {
  const __m256i ones = _mm256_set1_epi32(0x00010001);
  __m256i sums[kChains];
  for (__m256i& sum : sums) sum = ones;
  for (int64_t round = 0; round < kRounds; ++round) {
    for (__m256i& sum : sums) sum = _mm256_add_epi32(ones, _mm256_madd_epi16(sum, ones));
  }
  __m256i total = ones;
  for (const __m256i& sum : sums) total = _mm256_add_epi32(total, sum);
  use(total);
}

/// Four chains, because there are eight tiles. The tiles of x and of weights hold zeros.
[[gnu::target("amx-tile,amx-int8")]] void dot_amx() {
  struct alignas(64) Shapes {
    uint8_t palette = 1;
    uint8_t unused[15] = {};
    uint16_t bytes[16] = {64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16};
  };
  const Shapes shapes;
  asm volatile("ldtilecfg %0" : : "m"(shapes));
  for (int64_t step = 0; step < kChains * kRounds; step += 4) {
    asm volatile("tdpbusd %tmm5, %tmm4, %tmm0");
    asm volatile("tdpbusd %tmm5, %tmm4, %tmm1");
    asm volatile("tdpbusd %tmm5, %tmm4, %tmm2");
    asm volatile("tdpbusd %tmm5, %tmm4, %tmm3");
  }
  asm volatile("tilerelease");
}

Loop loop_f32() {
  if (is_supported(Isa::kAvx512Bw)) return {fma_avx512, 32};
  if (is_supported(Isa::kAvx2)) return {fma_avx2, 16};
  return {};
}

Loop loop_u8s8() {
  if (chosen_isa() == Isa::kAmx) return {dot_amx, int64_t{2} * 16 * 64 * 16};
  if (is_supported(Isa::kAvx512Vnni)) return {dot_vnni, 128};
  if (is_supported(Isa::kAvx512Bw)) return {dot_avx512bw, 64};
  if (is_supported(Isa::kAvx2)) return {dot_avx2, 32};
  return {};
}
#else
Loop loop_f32() { return {}; }
Loop loop_u8s8() { return {}; }
#endif

// The peak of fewer bits is that of bytes.
bool is_integer(const std::string& family) { return family.find("f32") == std::string::npos; }

template <Loop (*loop)()>
Call peak(const Problem&) {
  return [run = loop().run] {
    parallel_for(kBlocksPerThread * threads(), 1, [&](int64_t, int64_t) { run(); });
  };
}

}  // namespace

Implementation peak_kernels() {
  Implementation peaks{"peak", set_threads, {}};
  if (loop_f32().run == nullptr) return peaks;
  for (const auto& [family, make] : quantrain_kernels().families) {
    if (family.starts_with("batch_norm")) continue;  // memory is their limit
    peaks.families.emplace(family, is_integer(family) ? peak<loop_u8s8> : peak<loop_f32>);
  }
  return peaks;
}

int64_t peak_operations(const std::string& family) {
  const Loop loop = is_integer(family) ? loop_u8s8() : loop_f32();
  return loop.operations * kChains * kRounds * kBlocksPerThread * threads();
}

}  // namespace quantrain::benchmarks
