#include "framework/core/rounding.hpp"

#include <cfenv>
#include <limits>
#include <vector>

#include "framework/core/parallel.hpp"
#include "tests/catch.hpp"
#include "tests/framework/core/loops.hpp"
#include "tests/threads.hpp"

namespace quantrain {
namespace {

// Divides at run time: without volatile, the compiler would assume the default rounding mode and
// fold the division. The float nearest to 0.7 is below 0.7.
float seven_tenths() {
  volatile float seven = 7.0f;
  volatile float ten = 10.0f;
  return seven / ten;
}

class Mode {
 public:
  explicit Mode(int mode) : old_(std::fegetround()) { std::fesetround(mode); }
  ~Mode() { std::fesetround(old_); }
  Mode(const Mode&) = delete;
  Mode& operator=(const Mode&) = delete;

 private:
  int old_;
};

}  // namespace

TEST_CASE("DefaultRounding rounds to nearest as long as it lives", "[core][rounding]") {
  const float nearest = seven_tenths();
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    const Mode other(mode);
    const float before = seven_tenths();
    {
      const DefaultRounding rounding;
      CHECK(seven_tenths() == nearest);
      CHECK(std::fegetround() == FE_TONEAREST);
      const DefaultRounding again;
      CHECK(seven_tenths() == nearest);
    }
    CHECK(std::fegetround() == mode);
    CHECK(seven_tenths() == before);
    CHECK((before == nearest) == (mode != FE_UPWARD));
  }
}

TEST_CASE("loops compute in the default rounding mode, in every thread and for any size",
          "[core][rounding]") {
  const test::DefaultThreads restore;
  const float nearest = seven_tenths();
  const Mode upward(FE_UPWARD);
  REQUIRE(seven_tenths() != nearest);
  for (const int threads : test::thread_counts({1, 2, 5})) {
    set_threads(threads);  // new workers inherit the mode of the thread that starts them
    for (const int64_t n : {1, 10, 10000}) {
      std::vector<float> quotients(static_cast<size_t>(n));
      parallel_for(n, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) quotients[static_cast<size_t>(i)] = seven_tenths();
      });
      CHECK(quotients == std::vector<float>(static_cast<size_t>(n), nearest));
    }
  }
  CHECK(std::fegetround() == FE_UPWARD);
}

#if defined(__x86_64__)
TEST_CASE("DefaultRounding keeps subnormal numbers even if the caller flushes them to 0",
          "[core][rounding]") {
  const auto halved = [] {
    volatile float least = std::numeric_limits<float>::min();
    volatile float half = 0.5f;
    return least * half;
  };
  const unsigned old = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(old | 0x8040);
  const float flushed = halved();
  float kept = 0.0f;
  {
    const DefaultRounding rounding;
    kept = halved();
  }
  const float again = halved();
  __builtin_ia32_ldmxcsr(old);
  CHECK(flushed == 0.0f);
  CHECK(kept > 0.0f);
  CHECK(again == 0.0f);
}
#endif

}  // namespace quantrain
