#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "framework/core/buffer.hpp"
#include "framework/core/parallel.hpp"
#include "tests/catch.hpp"
#include "tests/child.hpp"
#include "tests/framework/core/loops.hpp"
#include "tests/threads.hpp"

namespace quantrain {

TEST_CASE("children of a process work even if it forks while its threads are busy",
          "[core][fork]") {
  std::atomic<bool> done = false;
  std::atomic<int> busy = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      ++busy;
      while (!done) {
        const Buffer<float> a(1000);
        const Buffer<float> b(100000);
      }
    });
  }
  while (busy < 4) std::this_thread::yield();
  int whole = 0;
  for (int i = 0; i < 40; ++i) {
    const test::Child child = test::in_child(
        []() -> std::string {
          const Buffer<float> a(1000);
          std::atomic<int64_t> sum = 0;
          parallel_for(1000, 10, [&](int64_t begin, int64_t end) { sum += end - begin; });
          return std::to_string(sum);
        },
        10);
    whole += child.text == "1000";
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(whole == 40);
}

TEST_CASE("loops of a forked process run in the calling thread", "[core][fork]") {
  const test::DefaultThreads restore;
  const int most = test::thread_counts({1, 3}).back();
  set_threads(most);
  CHECK(test::threads_of(10000).size() <= static_cast<size_t>(most));
  const test::Child child = test::in_child(
      [&]() -> std::string {
        const std::set<std::thread::id> ids = test::threads_of(10000);
        set_threads(most);
        const std::set<std::thread::id> later = test::threads_of(10000);
        const bool alone = ids == std::set{std::this_thread::get_id()} && ids == later;
        set_threads(0);
        return std::to_string(threads()) + (alone ? " alone" : " not alone");
      },
      20);
  CHECK(child.text == "1 alone");
  CHECK(threads() == most);
}

}  // namespace quantrain
