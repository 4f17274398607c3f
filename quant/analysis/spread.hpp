#pragma once

#include <cstdint>
#include <vector>

namespace quantrain::quant {

/// At most `most` of the numbers 0 to n - 1, in order: all if n <= most, else one of each of `most`
/// equal parts, chosen at random from a fixed seed. So data in a periodic order are met evenly.
std::vector<int64_t> spread(int64_t n, int64_t most);

}  // namespace quantrain::quant
