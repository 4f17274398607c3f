#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

// Around Google Benchmark: names without its own suffixes, a line for each benchmark, and the
// medians for the tables at the end.
namespace quantrain::benchmarks {

/// What was measured, by the names of the benchmarks: medians over the repetitions.
class Results {
 public:
  /// In the order of their end.
  const std::vector<std::string>& names() const { return names_; }
  /// Operations per second; 0 if there is no such benchmark, or it did not run.
  double rate(const std::string& name) const;
  /// Seconds of one call; 0 likewise.
  double seconds(const std::string& name) const;

 private:
  friend class Collector;
  struct Samples {
    std::vector<double> rates, seconds;
  };
  std::vector<std::string> names_;
  std::map<std::string, Samples> samples_;
};

/// Thread counts to measure: one, and all there are.
std::vector<int> thread_counts();

/// Parts of a name, with slashes in between.
template <class... Parts>
std::string join(const std::string& first, const Parts&... parts) {
  std::string name = first;
  (name.append("/").append(parts), ...);
  return name;
}
std::string threads_part(int threads);

/// Registers a benchmark of something that does `operations` each time. `prepare` is called before
/// each repetition and gives the call to be timed.
void add_benchmark(const std::string& name,
                   int64_t operations,
                   const std::function<std::function<void()>()>& prepare);
/// The register loops of a family as "family/peak/registers/threads:N", for every thread count.
void add_peaks(const std::string& family);
std::string peak_name(const std::string& family, int threads);

/// Runs what was registered, repetitions in random order, and then prints the tables. Flags are
/// those of Google Benchmark. Returns the exit status.
int run(int argc, char** argv, const std::function<void(const Results&)>& print_tables);

}  // namespace quantrain::benchmarks
