#include "framework/kernels/dispatch.hpp"

#include "framework/core/error.hpp"

namespace quantrain::kernels {

extern const KernelTable kReferenceKernels;
#if defined(__x86_64__)
extern const KernelTable kSse2Kernels;
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvx512BwKernels;
extern const KernelTable kAvx512VnniKernels;
#elif defined(__aarch64__)
extern const KernelTable kNeon64Kernels;
#endif

const KernelTable& table(Isa isa) {
  switch (isa) {
    case Isa::kReference: return kReferenceKernels;
#if defined(__x86_64__)
    case Isa::kSse2: return kSse2Kernels;
    case Isa::kAvx2: return kAvx2Kernels;
    case Isa::kAvx512Bw: return kAvx512BwKernels;
    case Isa::kAvx512Vnni: return kAvx512VnniKernels;
#elif defined(__aarch64__)
    case Isa::kNeon64: return kNeon64Kernels;
#endif
    default: break;
  }
  throw DataError("isa", isa_name(isa), " is not built into this library");
}

const KernelTable& table() { return table(chosen_isa()); }

}  // namespace quantrain::kernels
