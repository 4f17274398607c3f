#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"

// Replaces parallel.cpp if quantrain is built without threads.
namespace quantrain {

void set_threads(int n) {
  if (n < 0) throw DataError("set_threads", "number of threads is ", n, ", expected 0 or 1");
  if (n > 1) {
    throw DataError("set_threads",
                    "cannot use ",
                    n,
                    " threads: this library was built for one, with QUANTRAIN_THREADS=OFF");
  }
}

int threads() { return 1; }

SerialLoops::SerialLoops() = default;
SerialLoops::~SerialLoops() = default;

namespace detail {

void run_blocks(int64_t blocks, void* context, BlockFunction function) {
  const DefaultRounding rounding;
  for (int64_t i = 0; i < blocks; ++i) function(context, i);
}

}  // namespace detail
}  // namespace quantrain
