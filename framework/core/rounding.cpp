#include "framework/core/rounding.hpp"

namespace quantrain {
namespace {

void write(uint64_t control) {
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(static_cast<unsigned>(control));
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(control));
#else
  static_cast<void>(control);
#endif
}

}  // namespace

void DefaultRounding::set() {
  rounding_ = std::fegetround();
  std::fesetround(FE_TONEAREST);
  write(read() & ~kMode);
}

void DefaultRounding::restore() const {
  std::fesetround(rounding_);
  write((read() & ~kMode) | (found_ & kMode));
}

}  // namespace quantrain
