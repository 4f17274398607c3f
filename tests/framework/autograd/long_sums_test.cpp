#include "tests/long_sums.hpp"

#include "tests/catch.hpp"

namespace quantrain::test {
namespace {

TEST_CASE("sums of many terms are as exact as pairwise sums", "[autograd][long_sums]") {
  for (const LongSum& sum : long_sums()) {
    for (const Range& range : kRanges) {
      for (const int64_t terms : {10'000, 100'000}) {
        if (terms > sum.most) continue;
        const SumErrors errors = sum.run(terms, range);
        INFO(sum.name << " of " << terms << " terms in " << range.name << ": pairwise "
                      << errors.pairwise);
        CHECK(errors.own <= errors.bound());
      }
    }
  }
}

}  // namespace
}  // namespace quantrain::test
