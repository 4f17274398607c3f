#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/dispatch/tables.hpp"

namespace quantrain::kernels {

extern const IntegerTable kReferenceIntegerKernels;
#if defined(__x86_64__)
extern const IntegerTable kSse2IntegerKernels;
extern const IntegerTable kAvx2IntegerKernels;
extern const IntegerTable kAvxVnniIntegerKernels;
#if QUANTRAIN_AVX512
extern const IntegerTable kAvx512BwIntegerKernels;
extern const IntegerTable kAvx512VnniIntegerKernels;
#endif
#if QUANTRAIN_AMX
extern const IntegerTable kAmxIntegerKernels;
#endif
#elif defined(__aarch64__)
extern const IntegerTable kNeon64IntegerKernels;
extern const IntegerTable kNeon64DotIntegerKernels;
extern const IntegerTable kNeon64I8mmIntegerKernels;
#endif

namespace {

constexpr Tables<IntegerTable> kTables = [] {
  Tables<IntegerTable> tables;
  tables.set(Isa::kReference, kReferenceIntegerKernels);
#if defined(__x86_64__)
  tables.set(Isa::kSse2, kSse2IntegerKernels);
  tables.set(Isa::kAvx2, kAvx2IntegerKernels);
  tables.set(Isa::kAvxVnni, kAvxVnniIntegerKernels);
#if QUANTRAIN_AVX512
  tables.set(Isa::kAvx512Bw, kAvx512BwIntegerKernels);
  tables.set(Isa::kAvx512Vnni, kAvx512VnniIntegerKernels);
#endif
#if QUANTRAIN_AMX
  tables.set(Isa::kAmx, kAmxIntegerKernels);
#endif
#elif defined(__aarch64__)
  tables.set(Isa::kNeon64, kNeon64IntegerKernels);
  tables.set(Isa::kNeon64Dot, kNeon64DotIntegerKernels);
  tables.set(Isa::kNeon64I8mm, kNeon64I8mmIntegerKernels);
#endif
  return tables;
}();

}  // namespace

const IntegerTable& integer_table(Isa isa) { return kTables.at(isa); }

const IntegerTable& integer_table() { return kTables.chosen(); }

}  // namespace quantrain::kernels
