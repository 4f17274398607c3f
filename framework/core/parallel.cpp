#include "framework/core/parallel.hpp"

#include <pthread.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/processors.hpp"
#include "framework/core/system/process.hpp"

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

constexpr int kMostThreads = 1024;

int requested_threads = 0;
bool is_chosen = false;             // whether set_threads() was called
bool is_default = false;            // whether requested_threads is what is usable
thread_local int serial_loops = 0;  // living SerialLoops of this thread
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
[[maybe_unused]] const bool is_registered = (system::at_fork(nullptr, nullptr, after_fork), true);

/// The destructor calls f, also when an exception leaves the scope.
template <class F>
struct OnExit {
  explicit OnExit(const F& function) : f(function) {}
  ~OnExit() { f(); }
  OnExit(const OnExit&) = delete;
  OnExit& operator=(const OnExit&) = delete;
  F f;
};

/// How many of n threads the system allows, the caller included. TBB ends the process if it is
/// refused a thread, so this starts threads that do nothing before TBB starts its own.
int granted(int n) {
  pthread_mutex_t until_all_live = PTHREAD_MUTEX_INITIALIZER;
  pthread_t made[kMostThreads];
  const auto wait = [](void* mutex) -> void* {
    ::pthread_mutex_lock(static_cast<pthread_mutex_t*>(mutex));
    ::pthread_mutex_unlock(static_cast<pthread_mutex_t*>(mutex));
    return nullptr;
  };
  int count = 0;
  ::pthread_mutex_lock(&until_all_live);
  while (count < std::min(n, kMostThreads) - 1 &&
         ::pthread_create(&made[count], nullptr, wait, &until_all_live) == 0)
    ++count;
  ::pthread_mutex_unlock(&until_all_live);
  for (int i = 0; i < count; ++i) ::pthread_join(made[i], nullptr);
  if (count + 1 >= std::min(n, kMostThreads)) return n;
  static bool is_said = false;
  if (!std::exchange(is_said, true))
    std::fprintf(stderr, "quantrain: the system allows %d of %d threads\n", count + 1, n);
  return count + 1;
}

/// Uses n threads; 0: those of TBB, unless control groups grant less time, or the system refuses
/// some of them.
void use_threads(int n) {
  if (is_forked) {
    requested_threads = n;
    return;
  }
  is_default = n == 0;
  // Not those of the caller's arena, which may be smaller: the choice is for all later loops, too.
  const int most = tbb::info::default_concurrency();
  const int usable = is_default ? usable_processors() : most;
  if (usable < most) n = usable;
  const int wanted = n > 0 ? n : most;
  const int given = granted(wanted);
  if (given < wanted) n = given;
  requested_threads = n;
  arena.reset();
  allowed.reset();
  // A control that allows fewer than before would take threads from the program's other loops.
  constexpr auto kAllowed = tbb::global_control::max_allowed_parallelism;
  if (n > 0 && static_cast<size_t>(n) > tbb::global_control::active_value(kAllowed))
    allowed = std::make_unique<tbb::global_control>(kAllowed, n);
  arena = n > 1 ? std::make_unique<tbb::task_arena>(n) : nullptr;
  is_chosen = true;
}

/// The blocks of a loop, divided evenly among its threads. A thread takes the blocks of its own
/// share, in order, and then helps with those of others. Loops over the same data divide it in the
/// same way, so most of what a thread reads is in its own cache. There are as many tasks as
/// threads, because a task costs up to a microsecond.
class Shares {
 public:
  Shares(int64_t blocks, int threads)
      : count_(static_cast<int>(std::min<int64_t>(blocks, threads))),
        many_(count_ > kFew ? std::make_unique<Share[]>(static_cast<size_t>(count_)) : nullptr),
        shares_(many_ ? many_.get() : few_) {
    for (int i = 0; i < count_; ++i) {
      shares_[i].next.store(blocks * i / count_, std::memory_order_relaxed);
      shares_[i].end = blocks * (i + 1) / count_;
    }
  }
  int count() const { return count_; }

  /// Calls body(block) for the blocks that no other thread has taken, first for those of share
  /// `own`. If one throws, the threads take no more blocks.
  template <class Body>
  void run(int own, const Body& body) {
    for (int k = 0; k < count_; ++k) {
      Share& share = shares_[(own + k) % count_];
      // The first read spares other threads the write to a share that has ended.
      while (share.next.load(std::memory_order_relaxed) < share.end) {
        const int64_t block = share.next.fetch_add(1, std::memory_order_relaxed);
        if (block >= share.end || has_failed_.load(std::memory_order_relaxed)) break;
        try {
          body(block);
        } catch (...) {
          has_failed_.store(true, std::memory_order_relaxed);
          throw;
        }
      }
    }
  }

 private:
  static constexpr int kFew = 32;
  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end;
  };
  int count_;
  std::atomic<bool> has_failed_ = false;
  std::unique_ptr<Share[]> many_;
  Share few_[kFew];
  Share* shares_;
};

/// For programs that do not call set_threads().
void choose_once() {
  static const bool is_done = [] {
    if (!is_chosen) use_threads(0);
    return true;
  }();
  static_cast<void>(is_done);
}

}  // namespace

void set_threads(int n) {
  if (n < 0 || n > kMostThreads)
    throw DataError("set_threads", "number of threads is ", n, ", expected 0 to ", kMostThreads);
  use_threads(n);
}

int threads() {
  if (is_forked || serial_loops > 0) return 1;
  choose_once();
  const int own = tbb::this_task_arena::max_concurrency();
  if (requested_threads == 0) return own;
  return is_default ? std::min(requested_threads, own) : requested_threads;
}

SerialLoops::SerialLoops() { ++serial_loops; }
SerialLoops::~SerialLoops() { --serial_loops; }

namespace detail {

void run_blocks(int64_t blocks, void* context, BlockFunction function) {
  if (is_forked || serial_loops > 0 || (choose_once(), requested_threads == 1)) {
    const DefaultRounding rounding;
    for (int64_t i = 0; i < blocks; ++i) function(context, i);
    return;
  }
  char start = 0;
  char end = 0;
  Shares shares(blocks, threads());
  const auto loop = [&] {
    // With this partitioner, TBB gives each task to the same thread in each loop, if it is free.
    tbb::parallel_for(
        tbb::blocked_range<int>(0, shares.count(), 1),
        [&](const tbb::blocked_range<int>& range) {
          QUANTRAIN_ACQUIRE(&start);
          const OnExit end_of_task([&] { QUANTRAIN_RELEASE(&end); });
          const DefaultRounding rounding;
          for (int share = range.begin(); share < range.end(); ++share)
            shares.run(share, [&](int64_t i) { function(context, i); });
        },
        tbb::static_partitioner{});
  };
  const OnExit after_tasks([&] { QUANTRAIN_ACQUIRE(&end); });
  QUANTRAIN_RELEASE(&start);
  // By default, a caller's arena with fewer threads is respected.
  const bool fits = is_default && tbb::this_task_arena::max_concurrency() <= requested_threads;
  arena && !fits ? arena->execute(loop) : loop();
}

}  // namespace detail
}  // namespace quantrain
