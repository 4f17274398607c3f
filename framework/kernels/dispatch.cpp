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

// In the order of Isa; null where it is not built.
constexpr const KernelTable* kTables[] = {
    &kReferenceKernels,
#if defined(__x86_64__)
    &kSse2Kernels,
    &kAvx2Kernels,
    &kAvx512BwKernels,
    &kAvx512VnniKernels,
    nullptr,
#elif defined(__aarch64__)
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    &kNeon64Kernels,
#else
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
#endif
};
static_assert(std::size(kTables) == std::size(kAllIsas));

}  // namespace

const KernelTable& table(Isa isa) {
  const KernelTable* const kernels = kTables[static_cast<int>(isa)];
  if (kernels == nullptr) throw DataError("isa", isa_name(isa), " is not built into this library");
  return *kernels;
}

const KernelTable& table() { return *kTables[static_cast<int>(chosen_isa())]; }

}  // namespace quantrain::kernels
