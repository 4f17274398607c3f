#include "framework/core/parallel.hpp"

#include <pthread.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <memory>
#include <utility>

#include "framework/core/error.hpp"

// Debian's TBB is not instrumented, so the thread sanitizer does not see how TBB orders the start
// and the end of a task. These two macros tell the sanitizer this order, for every loop of the
// library, also when a body throws. The sanitizer's option ignore_noninstrumented_modules
// (CMakePresets.json) hides TBB's accesses to its own memory.
#if defined(__SANITIZE_THREAD__) || defined(QUANTRAIN_SANITIZE_THREAD)
#include <sanitizer/tsan_interface.h>
#define QUANTRAIN_ACQUIRE(address) __tsan_acquire(address)
#define QUANTRAIN_RELEASE(address) __tsan_release(address)
#else
#define QUANTRAIN_ACQUIRE(address) static_cast<void>(address)
#define QUANTRAIN_RELEASE(address) static_cast<void>(address)
#endif

namespace quantrain {
namespace {

int requested_threads = 0;
thread_local bool is_serial = false;  // whether this thread has a SerialLoops
std::unique_ptr<tbb::task_arena> arena;
// Allows TBB to start more threads than there are cores.
std::unique_ptr<tbb::global_control> allowed;
// True in a child process after fork(). The child has none of TBB's threads, but the locks that
// these threads held stay locked.
bool is_forked = false;

void after_fork() {
  is_forked = true;
  static_cast<void>(arena.release());
  static_cast<void>(allowed.release());
}
[[maybe_unused]] const int registered = ::pthread_atfork(nullptr, nullptr, after_fork);

/// The destructor calls f, also when an exception leaves the scope.
template <class F>
struct OnExit {
  explicit OnExit(const F& function) : f(function) {}
  ~OnExit() { f(); }
  OnExit(const OnExit&) = delete;
  OnExit& operator=(const OnExit&) = delete;
  F f;
};

}  // namespace

void set_threads(int n) {
  if (n < 0) throw DataError("set_threads", "number of threads is negative: ", n);
  requested_threads = n;
  if (is_forked) return;
  arena.reset();
  allowed.reset();
  if (n > tbb::this_task_arena::max_concurrency()) {
    allowed =
        std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, n);
  }
  arena = n > 1 ? std::make_unique<tbb::task_arena>(n) : nullptr;
}

int threads() {
  if (is_forked || is_serial) return 1;
  return requested_threads > 0 ? requested_threads : tbb::this_task_arena::max_concurrency();
}

SerialLoops::SerialLoops() : before_(std::exchange(is_serial, true)) {}
SerialLoops::~SerialLoops() { is_serial = before_; }

namespace detail {

void run_blocks(int64_t blocks, void* context, BlockFunction function) {
  if (requested_threads == 1 || is_forked || is_serial) {
    const DefaultRounding rounding;
    for (int64_t i = 0; i < blocks; ++i) function(context, i);
    return;
  }
  char start = 0;
  char end = 0;
  const auto loop = [&] {
    tbb::parallel_for(
        tbb::blocked_range<int64_t>(0, blocks, 1),
        [&](const tbb::blocked_range<int64_t>& range) {
          QUANTRAIN_ACQUIRE(&start);
          const OnExit end_of_task([&] { QUANTRAIN_RELEASE(&end); });
          const DefaultRounding rounding;
          for (int64_t i = range.begin(); i < range.end(); ++i) function(context, i);
        },
        tbb::simple_partitioner{});
  };
  const OnExit after_tasks([&] { QUANTRAIN_ACQUIRE(&end); });
  QUANTRAIN_RELEASE(&start);
  arena ? arena->execute(loop) : loop();
}

}  // namespace detail
}  // namespace quantrain
