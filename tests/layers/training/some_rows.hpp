#pragma once

#include <cstdint>
#include <vector>

#include "framework/core/random.hpp"
#include "framework/data/dataset.hpp"

namespace quantrain::test {

/// n rows of 3 bytes, the same in each call. The label says whether the first byte is larger than
/// the second.
inline Dataset some_rows(int64_t n) {
  Random random(5);
  std::vector<uint8_t> bytes;
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < n; ++i) {
    for (int k = 0; k < 3; ++k) bytes.push_back(static_cast<uint8_t>(random.below(256)));
    labels.push_back(bytes[bytes.size() - 3] > bytes[bytes.size() - 2] ? 1 : 0);
  }
  return Dataset({n, 3}, bytes, labels, 2);
}

}  // namespace quantrain::test
