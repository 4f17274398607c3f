#include "framework/core/processors.hpp"
#include "tests/catch.hpp"
#include "tests/system.hpp"

namespace quantrain {

TEST_CASE("a process may use the processors of its affinity mask", "[core][processors]") {
  int usable = 0;
  const bool is_set = test::on_one_processor([&] { usable = usable_processors(); });
#if defined(__linux__)
  REQUIRE(is_set);
#endif
  if (is_set) CHECK(usable == 1);
}

}  // namespace quantrain
