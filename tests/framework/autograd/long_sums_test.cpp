#include "tests/long_sums.hpp"

#include "framework/core/cpu.hpp"
#include "tests/catch.hpp"
#include "tests/sanitized.hpp"

namespace quantrain::test {
namespace {

void check(const LongSum& sum, const Range& range, int64_t terms) {
  const SumErrors errors = sum.run(terms, range);
  INFO(sum.name << " of " << terms << " terms in " << range.name << ": pairwise "
                << errors.pairwise);
  CHECK(errors.own <= errors.bound());
}

TEST_CASE("sums of many terms are as accurate as pairwise sums", "[autograd][long_sums]") {
  for (const LongSum& sum : long_sums()) {
    for (const Range& range : kRanges) {
      for (const int64_t terms : {10'000, 100'000}) {
        if (terms > sum.most || (kSanitized && terms > 10'000)) continue;
        check(sum, range, terms);
      }
    }
  }
}

TEST_CASE("weight gradients of large images are as accurate as pairwise sums",
          "[autograd][long_sums]") {
  for (const LongSum& sum : long_sums()) {
    if (sum.name == "conv2d's gradient by weights" || sum.name == "the same, depthwise")
      check(sum, kRanges[2], kSanitized ? 30'000 : 1'000'000);
  }
}

TEST_CASE("the reference kernels' sums are as accurate as pairwise sums", "[autograd][long_sums]") {
  struct OnReference {
    Isa chosen = chosen_isa();
    OnReference() { set_isa(Isa::kReference); }
    ~OnReference() { set_isa(chosen); }
  };
  const OnReference on_reference;
  const int64_t terms = kSanitized ? 10'000 : 100'000;
  for (const LongSum& sum : long_sums()) {
    if (terms <= sum.most) check(sum, kRanges[2], terms);
  }
}

}  // namespace
}  // namespace quantrain::test
