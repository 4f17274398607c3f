#include "framework/kernels/dispatch.hpp"

#include <iterator>

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

namespace {

struct Tables {
  const KernelTable* of[std::size(kAllIsas)];  // null where it is not built

  constexpr Tables() : of() {
    at(Isa::kReference) = &kReferenceKernels;
#if defined(__x86_64__)
    at(Isa::kSse2) = &kSse2Kernels;
    at(Isa::kAvx2) = &kAvx2Kernels;
    at(Isa::kAvx512Bw) = &kAvx512BwKernels;
    at(Isa::kAvx512Vnni) = &kAvx512VnniKernels;
#elif defined(__aarch64__)
    at(Isa::kNeon64) = &kNeon64Kernels;
#endif
  }
  constexpr const KernelTable*& at(Isa isa) { return of[static_cast<int>(isa)]; }
};
constexpr Tables kTables;

}  // namespace

const KernelTable& table(Isa isa) {
  const KernelTable* const kernels = kTables.of[static_cast<int>(isa)];
  if (kernels == nullptr) throw DataError("isa", isa_name(isa), " is not built into this library");
  return *kernels;
}

const KernelTable& table() { return *kTables.of[static_cast<int>(chosen_isa())]; }

}  // namespace quantrain::kernels
