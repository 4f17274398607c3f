#include <algorithm>
#include <cstdio>

#include "tests/long_sums.hpp"
#include "tests/proofs/proofs.hpp"

namespace quantrain::proofs {

bool prove_sums(int64_t most) {
  std::printf("\nRelative errors of sums in float32\n\n");
  std::printf("%-30s %-12s %9s %9s %9s %9s\n",
              "operation",
              "terms in",
              "terms",
              "error",
              "pairwise",
              "bound");
  bool held = true;
  for (const test::LongSum& sum : test::long_sums()) {
    for (const test::Range& range : test::kRanges) {
      for (int64_t n = 10'000; n <= std::min(most, sum.most); n *= 10) {
        const test::SumErrors errors = sum.run(n, range);
        const double bound = errors.bound();
        const bool holds = errors.own <= bound;
        std::printf("%-30s %-12s %9lld %9.1e %9.1e %9.1e%s\n",
                    sum.name.c_str(),
                    range.name,
                    static_cast<long long>(n),
                    errors.own,
                    errors.pairwise,
                    bound,
                    holds ? "" : "  TOO LARGE");
        std::fflush(stdout);
        held = held && holds;
      }
    }
  }
  return held;
}

}  // namespace quantrain::proofs
