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
  const auto counts = json.at("counts").get<std::vector<int64_t>>();
  const auto first = json.at("first").get<int64_t>();
  // The observer's bins must include the value 0. The case's bins need not, so they are extended.
  const int64_t begin = std::min<int64_t>(first, 0);
  const int64_t end = std::max<int64_t>(first + static_cast<int64_t>(counts.size()), 0);
  with_bins.bins = std::max(options.bins, static_cast<int>(end - begin));
  auto observer = with_bins.make({.name = "fc"});
  const auto entry = [&](const char* name) {
    return quantrain::test::entry_of(observer->state(), name);
  };
  entry("counts").integers.fill(1);
  quantrain::test::set(entry("range").tensor,
                       {json.at("min").get<float>(), json.at("max").get<float>()});
  quantrain::test::set(entry("grid").tensor,
                       {static_cast<float>(begin), json.at("width").get<float>()});
  std::vector<int64_t> histogram(static_cast<size_t>(with_bins.bins));
  std::copy(counts.begin(), counts.end(), histogram.begin() + (first - begin));
  entry("histogram").integers.set(histogram);
  return observer;
}

}  // namespace quantrain::quant::test
