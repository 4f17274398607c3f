#pragma once

#include <cfenv>
#include <cstdint>

namespace quantrain {

/// While an object of this class lives, its thread computes in the default floating-point mode:
/// results are rounded to the nearest number, ties to even, and subnormal numbers are not flushed
/// to zero. The destructor restores the previous mode. A function that computes with floats begins
/// with such an object, unless its callers have one or it computes only in parallel loops. Every
/// block of a parallel loop begins with one, because a worker inherits the mode of the thread that
/// started it. Costs a nanosecond if the mode is already the default.
class DefaultRounding {
 public:
  [[nodiscard]] DefaultRounding() : found_(read()) {
    if ((found_ & kMode) != 0) [[unlikely]]
      set();
  }
  ~DefaultRounding() {
    if ((found_ & kMode) != 0) [[unlikely]]
      restore();
  }
  DefaultRounding(const DefaultRounding&) = delete;
  DefaultRounding& operator=(const DefaultRounding&) = delete;

 private:
#if defined(__x86_64__)
  // Bits of MXCSR that are 0 in the default mode: flush-to-zero, rounding, denormals-are-zeros.
  static constexpr uint64_t kMode = 0xe040;
  static uint64_t read() { return __builtin_ia32_stmxcsr(); }
#elif defined(__aarch64__)
  // Bits of FPCR that are 0 in the default mode: flush-to-zero, rounding.
  static constexpr uint64_t kMode = 0x1c80000;
  static uint64_t read() {
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
  }
#else
  static constexpr uint64_t kMode = ~uint64_t{0};
  static uint64_t read() { return std::fegetround() == FE_TONEAREST ? 0 : 1; }
#endif
  void set();
  void restore() const;

  uint64_t found_;
  int rounding_ = 0;  // from std::fegetround(): on x86, the x87 unit has its own rounding mode
};

/// Returns the value and forces its computation before this point. Otherwise the compiler may move
/// the computation out of the scope of a DefaultRounding, to where the value is used.
template <class T>
inline T computed(T value) {
  volatile T kept = value;
  return kept;
}

}  // namespace quantrain
