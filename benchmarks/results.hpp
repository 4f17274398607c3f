#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

// Runs benchmarks with Google Benchmark: removes the suffix "/real_time" from their names, prints a
// line for each benchmark, and collects the medians for the tables at the end.
namespace quantrain::benchmarks {

/// The medians over the repetitions of each benchmark, by its name.
class Results {
 public:
  /// Names of the benchmarks, in the order in which they ended.
  const std::vector<std::string>& names() const { return names_; }
  /// Operations per second; 0 if there is no such benchmark, or it did not run.
  double rate(const std::string& name) const;
  /// Seconds for one call; 0 in the same cases as rate().
  double seconds(const std::string& name) const;

 private:
  friend class Collector;
  struct Samples {
    std::vector<double> rates, seconds;
  };
  std::vector<std::string> names_;
  std::map<std::string, Samples> samples_;
};

/// The thread counts to measure: those of take_threads(), or 1 and usable_processors().
std::vector<int> thread_counts();
/// The numbers of threads of --trace, whose work is traced instead of timed (loop_trace.hpp).
const std::vector<int>& traces();
/// Takes "--threads 1,2,4" and "--trace 1,2,4" out of the command line. False, after a line on
/// standard error, if the numbers cannot be read.
bool take_threads(int& argc, char** argv);

/// Joins the parts of a benchmark's name with slashes.
template <class... Parts>
std::string join(const std::string& first, const Parts&... parts) {
  std::string name = first;
  (name.append("/").append(parts), ...);
  return name;
}
std::string threads_part(int threads);

/// Registers a benchmark. `prepare` runs before each repetition and returns the call to be timed.
/// One call performs `operations` operations.
void add_benchmark(const std::string& name,
                   int64_t operations,
                   const std::function<std::function<void()>()>& prepare);
/// Adds the peak loop of a family as the benchmark "family/peak/registers/threads:N", for every
/// thread count.
void add_peaks(const std::string& family);
std::string peak_name(const std::string& family, int threads);

/// Runs the registered benchmarks, with repetitions in random order, and then prints the tables.
/// argv holds flags of Google Benchmark. Returns the exit status.
int run(int argc, char** argv, const std::function<void(const Results&)>& print_tables);

}  // namespace quantrain::benchmarks
