#include <sched.h>

#include <thread>

#include "framework/core/processors.hpp"
#include "tests/catch.hpp"

namespace quantrain {

TEST_CASE("a process may use the processors of its affinity mask", "[core][processors]") {
#if defined(CPU_ALLOC)
  // The mask of this thread is the mask that counts.
  std::thread([] {
    cpu_set_t mask;
    REQUIRE(::sched_getaffinity(0, sizeof mask, &mask) == 0);
    int first = 0;
    while (!CPU_ISSET(first, &mask)) ++first;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    REQUIRE(::sched_setaffinity(0, sizeof mask, &mask) == 0);
    CHECK(usable_processors() == 1);
  }).join();
#endif
}

}  // namespace quantrain
