// Measures what reading a file costs, as multiples of the file: memory of its bytes, and time of
// the time that it takes to sort as many bytes as words of 8. For images and gzipped arrays, the
// pixels that they declare count in place of the file, and a file counts as at least 64 KiB. Prints
// a line for each file, and fails above 64; without optimization, times are not compared.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/splitmix64.hpp"
#include "fuzz/costly_files.hpp"
#include "fuzz/counted_memory.hpp"

namespace quantrain::fuzz {
namespace {

constexpr double kMost = 64.0;

double seconds_of(const std::function<void()>& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// A reader that finds each part of a file by its name takes about as long.
double seconds_to_sort(size_t bytes) {
  std::vector<uint64_t> words(bytes / sizeof(uint64_t));
  for (size_t i = 0; i < words.size(); ++i) words[i] = SplitMix64::mix(i);
  return seconds_of([&] { std::sort(words.begin(), words.end()); });
}

struct Cost {
  double memory = 0.0;
  double time = 0.0;
  std::string outcome = "read";
};

Cost cost_of(const CostlyFile& file) {
  constexpr int64_t kLeast = 64 << 10;
  const auto unit = static_cast<size_t>(
      std::max({static_cast<int64_t>(file.bytes.size()), file.declared, kLeast}));
  const double base = std::min(seconds_to_sort(unit), seconds_to_sort(unit));
  Cost cost;
  double seconds = 1e9;
  for (int i = 0; i < 3; ++i) {
    restart_peak();
    const int64_t before = bytes_in_use();
    seconds = std::min(seconds, seconds_of([&] {
                         try {
                           file.read(file.bytes);
                         } catch (const Error& error) {
                           cost.outcome = error.what();
                         }
                       }));
    cost.memory = static_cast<double>(peak_bytes() - before) / static_cast<double>(unit);
  }
  cost.time = seconds / base;
  return cost;
}

}  // namespace
}  // namespace quantrain::fuzz

int main() {
  using namespace quantrain;
  set_threads(1);
#ifdef __OPTIMIZE__
  constexpr bool kOptimized = true;
#else
  constexpr bool kOptimized = false;
#endif
  bool too_much = false;
  std::printf("%-32s %10s %8s %8s\n", "file", "bytes", "memory", "time");
  for (const fuzz::CostlyFile& file : fuzz::costly_files()) {
    const fuzz::Cost cost = fuzz::cost_of(file);
    const bool bad = cost.memory > fuzz::kMost || (kOptimized && cost.time > fuzz::kMost);
    too_much |= bad;
    std::printf("%-32s %10zu %8.1f %8.1f  %s%.100s\n",
                file.name.c_str(),
                file.bytes.size(),
                cost.memory,
                cost.time,
                bad ? "TOO MUCH: " : "",
                cost.outcome.c_str());
    std::fflush(stdout);
  }
  return too_much ? 1 : 0;
}
