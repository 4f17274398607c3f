#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

// Runs Google Benchmark: removes its suffixes from the names, prints a line for each benchmark, and
// collects the medians for the tables at the end.
namespace quantrain::benchmarks {

/// The measurements by benchmark name: medians over the repetitions.
class Results {
 public:
  /// In the order in which the benchmarks ended.
  const std::vector<std::string>& names() const { return names_; }
  /// Operations per second; 0 if there is no such benchmark, or it did not run.
  double rate(const std::string& name) const;
  /// Seconds of one call; 0 in the same cases.
  double seconds(const std::string& name) const;

 private:
  friend class Collector;
  struct Samples {
    std::vector<double> rates, seconds;
  };
  std::vector<std::string> names_;
  std::map<std::string, Samples> samples_;
};

/// Thread counts to measure: 1, and the number of hardware threads.
std::vector<int> thread_counts();

/// Joins the parts of a name with slashes.
template <class... Parts>
std::string join(const std::string& first, const Parts&... parts) {
  std::string name = first;
  (name.append("/").append(parts), ...);
  return name;
}
std::string threads_part(int threads);

/// Registers a benchmark of a call that does `operations` operations. `prepare` runs before each
/// repetition and returns the call to be timed.
void add_benchmark(const std::string& name,
                   int64_t operations,
                   const std::function<std::function<void()>()>& prepare);
/// Adds the peak loop of a family as the benchmark "family/peak/registers/threads:N", for every
/// thread count.
void add_peaks(const std::string& family);
std::string peak_name(const std::string& family, int threads);

/// Runs the registered benchmarks, with repetitions in random order, and then prints the tables.
/// Flags are those of Google Benchmark. Returns the exit status.
int run(int argc, char** argv, const std::function<void(const Results&)>& print_tables);

}  // namespace quantrain::benchmarks
