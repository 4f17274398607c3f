#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/task_arena.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "framework/core/processors.hpp"
#include "tests/catch.hpp"
#include "tests/framework/core/loops.hpp"
#include "tests/system.hpp"

// Loops in a build with threads.
namespace quantrain {

using test::blocks;
using test::DefaultThreads;
using test::threads_of;

TEST_CASE("a loop uses at most as many threads as were set", "[core][parallel]") {
  const DefaultThreads restore;
  for (const int n : {2, 3}) {
    set_threads(n);
    CHECK(threads() == n);
    CHECK(threads_of(10000).size() <= static_cast<size_t>(n));
  }
}

TEST_CASE("two threads run two blocks at the same time", "[core][parallel]") {
  const DefaultThreads restore;
  set_threads(2);
  std::mutex mutex;
  std::condition_variable changed;
  int running = 0;
  int met = 0;
  parallel_for(2, 1, [&](int64_t, int64_t) {
    std::unique_lock lock(mutex);
    ++running;
    changed.notify_all();
    // The limit is long, so that the wait fails only if the other block never starts.
    met += changed.wait_for(lock, std::chrono::minutes(1), [&] { return running == 2; });
  });
  CHECK(met == 2);
}

TEST_CASE("a thread that is done takes the blocks of one that is not", "[core][parallel]") {
  const DefaultThreads restore;
  for (const int n : {2, 40}) {
    set_threads(n);
    std::mutex mutex;
    std::condition_variable changed;
    int others = 0;
    bool met = false;
    parallel_for(3 * n, 1, [&](int64_t block, int64_t) {
      std::unique_lock lock(mutex);
      if (block > 0) {
        ++others;
        changed.notify_all();
      } else {
        met = changed.wait_for(lock, std::chrono::minutes(1), [&] { return others == 3 * n - 1; });
      }
    });
    CHECK(met);
  }
}

TEST_CASE("by default, no more threads run than the process may use", "[core][parallel]") {
  const DefaultThreads restore;
  set_threads(0);
  CHECK(threads() <= usable_processors());
  CHECK(threads_of(1000).size() <= static_cast<size_t>(usable_processors()));
}

TEST_CASE("if no number of threads is set, a loop stays in the caller's arena",
          "[core][parallel]") {
  const DefaultThreads restore;
  set_threads(0);
  tbb::task_arena arena(1, 1);
  arena.execute([] {
    CHECK(threads() == 1);
    CHECK(threads_of(1000).size() == 1);
    CHECK(blocks(100, 1).size() == 100);
  });
  set_threads(2);
  arena.execute([] {
    CHECK(threads() == 2);
    CHECK(blocks(100, 1).size() == 100);
  });
}

TEST_CASE("the choice of threads is for all later loops, whatever arena the first one is in",
          "[core][parallel]") {
  const DefaultThreads restore;
  const auto set_in_small_arena = [](int n) {
    tbb::task_arena arena(1, 1);
    arena.execute([n] { set_threads(n); });
  };
  // What the program allows stays, on a machine with at least two processors.
  {
    constexpr auto kAllowed = tbb::global_control::max_allowed_parallelism;
    const tbb::global_control control(kAllowed, 8);
    set_in_small_arena(2);
    CHECK(tbb::global_control::active_value(kAllowed) == 8);
    set_threads(4);
    CHECK(tbb::global_control::active_value(kAllowed) == 8);
  }
  // TBB counted its processors when it was loaded, but the mask of this thread allows one now.
  if (test::on_one_processor([&] { set_in_small_arena(0); })) CHECK(threads() == 1);
}

}  // namespace quantrain
