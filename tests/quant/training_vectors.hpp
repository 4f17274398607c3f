#pragma once

#include <vector>

#include "tests/vectors.hpp"

namespace quantrain::quant::test {

/// The cases of a section of training_methods.json (tests/reference/make_training_methods.py).
inline std::vector<quantrain::test::Json> training_cases(const char* section) {
  return quantrain::test::load_vectors(section, "training_methods.json")
      .get<std::vector<quantrain::test::Json>>();
}

/// For results of a few float32 operations; longer sums are computed in double.
inline constexpr quantrain::test::Tolerance kFewOperations{2e-6, 2e-6};

}  // namespace quantrain::quant::test
