#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/framework/core/loops.hpp"

// Loops in a build without threads.
namespace quantrain {

TEST_CASE("in a build without threads, loops run in order in the calling thread",
          "[core][parallel]") {
  CHECK(threads() == 1);
  CHECK(test::threads_of(1000) == std::set<std::thread::id>{std::this_thread::get_id()});
  std::vector<int64_t> begins;
  parallel_for(10, 4, [&](int64_t begin, int64_t) { begins.push_back(begin); });
  CHECK(begins == std::vector<int64_t>{0, 4, 8});
}

TEST_CASE("set_threads refuses more than one thread in a build without threads",
          "[core][parallel]") {
  for (const int n : {0, 1}) {
    set_threads(n);
    CHECK(threads() == 1);
  }
  QUANTRAIN_CHECK_ERROR(set_threads(2),
                        DataError,
                        "[set_threads] cannot use 2 threads: this library was built for one, with "
                        "QUANTRAIN_THREADS=OFF");
  CHECK(threads() == 1);
}

}  // namespace quantrain
