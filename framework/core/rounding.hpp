#pragma once

#include <cfenv>
#include <cstdint>

namespace quantrain {

/// While it lives, this thread computes in the default mode: to the nearest number, ties to even,
/// and with subnormal numbers. Then the mode is what it was. Everything that computes with floats
/// begins with one, and every loop: a worker has the mode of the thread that started it.
/// Costs a nanosecond where the mode is the default.
class DefaultRounding {
 public:
  DefaultRounding() : found_(read()) {
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
  static constexpr uint64_t kMode = 0xe040;  // MXCSR: flush to zero, rounding, denormals are zeros
  static uint64_t read() { return __builtin_ia32_stmxcsr(); }
#elif defined(__aarch64__)
  static constexpr uint64_t kMode = 0x1c80000;  // FPCR: flush to zero, rounding
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
  int rounding_ = 0;  // what the C library says it is, which is another register on x86
};

/// The value, computed by now. A compiler may move what it computes past the end of the scope that
/// keeps the rounding mode, where nothing but the value's use holds it back.
inline float computed(float value) {
  volatile float kept = value;
  return kept;
}

}  // namespace quantrain
