#include "framework/core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/framework/core/loops.hpp"
#include "tests/threads.hpp"

namespace quantrain {

using test::blocks;
using test::DefaultThreads;
using test::threads_of;

TEST_CASE("every element is visited once, with any number of threads", "[core][parallel]") {
  const DefaultThreads restore;
  for (const int threads : test::thread_counts({0, 1, 2, 5})) {
    set_threads(threads);
    for (const int64_t n : {1, 2, 99, 100, 101, 1000}) {
      for (const int64_t grain : {1, 7, 100, 5000}) {
        std::vector<int> visits(static_cast<size_t>(n));
        parallel_for(n, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
        });
        CHECK(std::count(visits.begin(), visits.end(), 1) == n);
      }
    }
  }
}

TEST_CASE("parallel_for_even makes 1, n or an even number of blocks; sizes differ by at most 1",
          "[core][parallel]") {
  for (const int64_t n : {1, 2, 5, 64, 99, 1000}) {
    for (const int64_t most : {0, 1, 7, 9, 100}) {
      std::mutex mutex;
      std::vector<std::pair<int64_t, int64_t>> all;
      parallel_for_even(n, most, [&](int64_t begin, int64_t end) {
        const std::lock_guard lock(mutex);
        all.emplace_back(begin, end);
      });
      std::sort(all.begin(), all.end());
      const auto count = static_cast<int64_t>(all.size());
      CAPTURE(n, most, count);
      REQUIRE(count == even_blocks(n, most));
      CHECK((count % 2 == 0 || count == 1 || count == n));
      int64_t next = 0;
      for (const auto& [begin, end] : all) {
        CHECK(begin == next);
        CHECK(end - begin <= std::max<int64_t>(most, 1));
        CHECK((end - begin == n / count || end - begin == n / count + 1));
        next = end;
      }
      CHECK(next == n);
    }
  }
  parallel_for_even(0, 8, [](int64_t, int64_t) { FAIL("called for an empty range"); });
}

TEST_CASE("the blocks depend on the size of the work, never on the number of threads",
          "[core][parallel]") {
  const DefaultThreads restore;
  const std::vector<std::pair<int64_t, int64_t>> expected{{0, 4}, {4, 8}, {8, 10}};
  for (const int threads : test::thread_counts({0, 1, 2, 5})) {
    set_threads(threads);
    CHECK(blocks(10, 4) == expected);
    CHECK(blocks(4, 4).size() == 1);
    CHECK(blocks(3, 0).size() == 3);
    CHECK(blocks(3, -1).size() == 3);
    CHECK(blocks(0, 4).empty());
    CHECK(blocks(-1, 4).empty());
  }
}

TEST_CASE("an exception from the body of a loop reaches the caller", "[core][parallel]") {
  const DefaultThreads restore;
  for (const int threads : test::thread_counts({0, 1, 2, 5})) {
    set_threads(threads);
    const auto fail = [](int64_t n, int64_t grain) {
      parallel_for(n, grain, [](int64_t begin, int64_t end) {
        if (begin <= 50 && 50 < end) throw DataError("body", "block ", begin);
      });
    };
    QUANTRAIN_CHECK_ERROR(fail(100, 1), DataError, "[body] block 50");
    QUANTRAIN_CHECK_ERROR(fail(100, 1000), DataError, "[body] block 0");
    CHECK(blocks(100, 1).size() == 100);
  }
}

TEST_CASE("after an exception, a loop takes no more blocks", "[core][parallel]") {
  const DefaultThreads restore;
  for (const int threads : test::thread_counts({1, 2})) {
    set_threads(threads);
    std::atomic<int> done = 0;
    const auto fail = [&] {
      parallel_for(4000, 1, [&](int64_t begin, int64_t) {
        if (begin == 0) throw DataError("body", "block 0");
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        ++done;
      });
    };
    QUANTRAIN_CHECK_ERROR(fail(), DataError, "[body] block 0");
    CHECK(done < 3999);
  }
}

TEST_CASE("loops nest", "[core][parallel]") {
  const DefaultThreads restore;
  for (const int threads : test::thread_counts({0, 1, 2, 5})) {
    set_threads(threads);
    std::vector<int> visits(20 * 30);
    parallel_for(20, 1, [&](int64_t row, int64_t) {
      parallel_for(30, 4, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(row * 30 + i)];
      });
    });
    CHECK(std::count(visits.begin(), visits.end(), 1) == 600);
  }
}

TEST_CASE("with one thread, loops run in the calling thread", "[core][parallel]") {
  const DefaultThreads restore;
  set_threads(1);
  CHECK(threads() == 1);
  CHECK(threads_of(1000) == std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST_CASE("within a SerialLoops, a thread runs its loops alone, and other threads do not",
          "[core][parallel]") {
  const DefaultThreads restore;
  for (const int n : test::thread_counts({1, 3})) {
    set_threads(n);
    {
      const SerialLoops serial;
      CHECK(threads() == 1);
      {
        const SerialLoops inner;
        CHECK(threads() == 1);
      }
      CHECK(threads() == 1);
      CHECK(threads_of(1000) == std::set<std::thread::id>{std::this_thread::get_id()});
      int other = 0;
      std::thread([&] { other = threads(); }).join();
      CHECK(other == n);
    }
    CHECK(threads() == n);
    // Each task of a loop runs its own loop alone.
    std::atomic<int> alone{0};
    parallel_for(50, 1, [&](int64_t, int64_t) {
      const SerialLoops serial;
      const std::thread::id self = std::this_thread::get_id();
      bool same = threads() == 1;
      parallel_for(20, 1, [&](int64_t, int64_t) { same &= std::this_thread::get_id() == self; });
      alone += same ? 1 : 0;
    });
    CHECK(alone == 50);
    CHECK(threads() == n);
  }
}

TEST_CASE("several threads may run loops at once", "[core][parallel]") {
  const DefaultThreads restore;
  for (const int threads : test::thread_counts({0, 1, 2})) {
    set_threads(threads);
    std::atomic<int64_t> sum{0};
    std::vector<std::thread> callers;
    for (int i = 0; i < 3; ++i) {
      callers.emplace_back(
          [&] { parallel_for(1000, 10, [&](int64_t begin, int64_t end) { sum += end - begin; }); });
    }
    for (std::thread& caller : callers) caller.join();
    CHECK(sum == 3000);
  }
}

TEST_CASE("loops are serial until the last SerialLoops ends, in any order", "[core][parallel]") {
  const DefaultThreads restore;
  const int most = test::thread_counts({1, 3}).back();
  set_threads(most);
  auto outer = std::make_unique<SerialLoops>();
  auto inner = std::make_unique<SerialLoops>();
  outer.reset();
  CHECK(threads() == 1);
  inner.reset();
  CHECK(threads() == most);
}

TEST_CASE("an impossible number of threads is rejected and changes nothing", "[core][parallel]") {
  const DefaultThreads restore;
  for (const int n : test::thread_counts({1, 2})) {
    set_threads(n);
    QUANTRAIN_CHECK_ERROR(
        set_threads(-1), DataError, "[set_threads] number of threads is -1, expected 0 ");
    CHECK_THROWS_AS(set_threads(40'000), DataError);
    CHECK_THROWS_AS(set_threads(1'000'000), DataError);
    CHECK(threads() == n);
  }
}

}  // namespace quantrain
