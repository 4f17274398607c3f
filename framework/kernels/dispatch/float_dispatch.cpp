#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/dispatch/tables.hpp"

namespace quantrain::kernels {

extern const FloatTable kReferenceFloatKernels;
#if defined(__x86_64__)
extern const FloatTable kSse2FloatKernels;
extern const FloatTable kAvx2FloatKernels;
#if QUANTRAIN_AVX512
extern const FloatTable kAvx512BwFloatKernels;
#endif
#elif defined(__aarch64__)
extern const FloatTable kNeon64FloatKernels;
#endif

namespace {

constexpr Tables<FloatTable> kTables = [] {
  Tables<FloatTable> tables;
  tables.set(Isa::kReference, kReferenceFloatKernels);
#if defined(__x86_64__)
  tables.set(Isa::kSse2, kSse2FloatKernels);
  tables.set(Isa::kAvx2, kAvx2FloatKernels);
  tables.set(Isa::kAvxVnni, kAvx2FloatKernels);
#if QUANTRAIN_AVX512
  tables.set(Isa::kAvx512Bw, kAvx512BwFloatKernels);
  tables.set(Isa::kAvx512Vnni, kAvx512BwFloatKernels);
#endif
#if QUANTRAIN_AMX
  tables.set(Isa::kAmx, kAvx512BwFloatKernels);
#endif
#elif defined(__aarch64__)
  tables.set(Isa::kNeon64, kNeon64FloatKernels);
  tables.set(Isa::kNeon64Dot, kNeon64FloatKernels);
  tables.set(Isa::kNeon64I8mm, kNeon64FloatKernels);
#endif
  return tables;
}();

}  // namespace

const FloatTable& float_table(Isa isa) { return kTables.at(isa); }

const FloatTable& float_table() { return kTables.chosen(); }

}  // namespace quantrain::kernels
