#pragma once

#include <algorithm>
#include <memory>

#include "quant/observers/spec.hpp"
#include "tests/tensors.hpp"
#include "tests/vectors.hpp"

namespace quantrain::quant::test {

using quantrain::test::Json;
using quantrain::test::load_vectors;

/// An observer whose state comes from a case of the section "histograms" in operations.json, as if
/// the observer had seen the case's values in one batch.
inline std::unique_ptr<Observer> loaded_histogram(const auto& options, const Json& json) {
  auto with_bins = options;
  const auto counts = json.at("counts").get<std::vector<float>>();
  const auto first = json.at("first").get<int64_t>();
  // The observer's bins must include the value 0. The case's bins need not, so they are extended.
  const int64_t begin = std::min<int64_t>(first, 0);
  const int64_t end = std::max<int64_t>(first + static_cast<int64_t>(counts.size()), 0);
  with_bins.bins = std::max(options.bins, static_cast<int>(end - begin));
  auto observer = with_bins.make({.name = "fc"});
  for (const NamedTensor& entry : observer->state()) {
    float* const x = quantrain::test::writable(entry.tensor);
    if (entry.name == "counts") {
      x[0] = x[2] = 1.0f;
    } else if (entry.name == "range") {
      x[0] = json.at("min").get<float>();
      x[1] = json.at("max").get<float>();
    } else if (entry.name == "grid") {
      x[0] = static_cast<float>(begin);
      x[1] = json.at("width").get<float>();
    } else if (entry.name == "histogram") {
      for (size_t i = 0; i < counts.size(); ++i)
        x[2 * (static_cast<size_t>(first - begin) + i)] = counts[i];
    }
  }
  return observer;
}

}  // namespace quantrain::quant::test
