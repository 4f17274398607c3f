#include "framework/core/scope_stack.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include "tests/catch.hpp"

namespace quantrain {
namespace {

struct Kind {};
using Stack = ScopeStack<int, int, Kind>;

}  // namespace

// The thread sanitizer sees a race if a scope reads another thread's unfinished one.
TEST_CASE("scopes of several threads begin and end at the same time", "[core]") {
  constexpr int kTargets = 16;
  constexpr int kScopes = 2000;
  std::atomic<int> restored = 0;
  std::atomic<int> passed_on = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kScopes; ++i) {
        Stack scope;
        scope.reserve(kTargets);
        for (int k = 0; k < kTargets; ++k) scope.keep(kTargets * t + k, k);
        scope.end([&](int, int, const int* later) { ++(later == nullptr ? restored : passed_on); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(restored == 2 * kScopes * kTargets);
  CHECK(passed_on == 0);  // the threads have different targets
}

}  // namespace quantrain
