#include "benchmarks/results.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "benchmarks/implementations.hpp"
#include "framework/core/cpu.hpp"
#include "framework/core/processors.hpp"

namespace quantrain::benchmarks {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The name without the suffix "/real_time", which Google Benchmark adds to all names.
std::string plain_name(benchmark::BenchmarkReporter::Run run) {
  run.run_name.time_type.clear();
  return run.run_name.str();
}

/// Writes the JSON file, with plain names.
class FileReporter : public benchmark::JSONReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> renamed = runs;
    for (Run& run : renamed) run.run_name.time_type.clear();
    JSONReporter::ReportRuns(renamed);
  }
};

}  // namespace

/// Keeps every repetition and prints a line for each benchmark.
class Collector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& context) override {
    PrintBasicContext(&GetErrorStream(), context);
    std::printf("Instruction set: %s\n\n%-72s %14s %10s %22s\n",
                std::string(isa_name(chosen_isa())).c_str(),
                "benchmark (medians of the repetitions)",
                "microseconds",
                "Gop/s",
                "Gop/s, low to high");
    return true;
  }

  void ReportRuns(const std::vector<Run>& runs) override {
    if (runs.empty() || runs.front().run_type != Run::RT_Iteration) return;  // an aggregate
    for (const Run& run : runs) {
      const auto rate = run.counters.find("items_per_second");
      if (rate == run.counters.end()) continue;
      const std::string name = plain_name(run);
      auto [entry, is_new] = results_.samples_.try_emplace(name);
      if (is_new) results_.names_.push_back(name);
      entry->second.rates.push_back(rate->second);
      entry->second.seconds.push_back(run.real_accumulated_time /
                                      static_cast<double>(run.iterations));
    }
    const std::string name = plain_name(runs.front());
    const auto entry = results_.samples_.find(name);
    if (entry == results_.samples_.end()) {
      std::printf("%-72s %14s\n", name.c_str(), "did not run");
      return;
    }
    const auto [low, high] =
        std::minmax_element(entry->second.rates.begin(), entry->second.rates.end());
    std::printf("%-72s %14.2f %10.2f %10.2f %11.2f\n",
                name.c_str(),
                results_.seconds(name) * 1e6,
                results_.rate(name) * 1e-9,
                *low * 1e-9,
                *high * 1e-9);
    std::fflush(stdout);
  }

  const Results& results() const { return results_; }

 private:
  Results results_;
};

double Results::rate(const std::string& name) const {
  const auto entry = samples_.find(name);
  return entry == samples_.end() ? 0.0 : median(entry->second.rates);
}

double Results::seconds(const std::string& name) const {
  const auto entry = samples_.find(name);
  return entry == samples_.end() ? 0.0 : median(entry->second.seconds);
}

namespace {
std::vector<int> chosen_counts;
std::vector<int> traced_counts;

/// Reads "1,2,4". False if it is something else.
bool read_counts(std::string_view list, std::vector<int>& counts) {
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    int count = 0;
    const auto [stopped, problem] = std::from_chars(list.data() + at, list.data() + end, count);
    if (problem != std::errc() || stopped != list.data() + end || count < 1 || count > 1024)
      return false;
    counts.push_back(count);
    at = end + 1;
  }
  return true;
}
}  // namespace

std::vector<int> thread_counts() {
  if (!chosen_counts.empty()) return chosen_counts;
  const int all = usable_processors();
  return all > 1 ? std::vector<int>{1, all} : std::vector<int>{1};
}

const std::vector<int>& traces() { return traced_counts; }

bool take_threads(int& argc, char** argv) {
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const bool is_trace = flag == "--trace";
    if (flag != "--threads" && !is_trace) {
      argv[kept++] = argv[i];
    } else if (++i == argc || !read_counts(argv[i], is_trace ? traced_counts : chosen_counts)) {
      std::fprintf(stderr, "%s: write numbers from 1 to 1024, as 1,2,4\n", flag.data());
      return false;
    }
  }
  argc = kept;
  return true;
}

std::string threads_part(int threads) { return "threads:" + std::to_string(threads); }

void add_benchmark(const std::string& name,
                   int64_t operations,
                   const std::function<std::function<void()>()>& prepare) {
  benchmark::RegisterBenchmark(name.c_str(), [operations, prepare](benchmark::State& state) {
    const std::function<void()> call = prepare();
    call();
    for (auto iteration : state) {
      static_cast<void>(iteration);
      call();
    }
    state.SetItemsProcessed(state.iterations() * operations);
  })->UseRealTime();
}

std::string peak_name(const std::string& family, int threads) {
  return join(family, "peak", "registers", threads_part(threads));
}

void add_peaks(const std::string& family) {
  const Implementation peaks = peak_kernels();
  const auto make = peaks.families.find(family);
  if (make == peaks.families.end()) return;
  for (const int threads : thread_counts()) {
    peaks.use_threads(threads);
    add_benchmark(peak_name(family, threads),
                  peak_operations(family),
                  [use_threads = peaks.use_threads, threads, make = make->second] {
                    use_threads(threads);
                    return make({});
                  });
  }
}

int run(int argc, char** argv, const std::function<void(const Results&)>& print_tables) {
  // Flags that make the numbers comparable come first, so that the user's own flags override them.
  std::string defaults[] = {"--benchmark_enable_random_interleaving=true",
                            "--benchmark_repetitions=5",
                            "--benchmark_min_time=0.05"};
  std::vector<char*> arguments{argv[0]};
  for (std::string& flag : defaults) arguments.push_back(flag.data());
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  const bool to_file = std::any_of(argv + 1, argv + argc, [](const char* argument) {
    return std::strncmp(argument, "--benchmark_out=", 16) == 0;
  });
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 1;

  Collector collector;
  FileReporter file;
  benchmark::RunSpecifiedBenchmarks(&collector, to_file ? &file : nullptr);
  print_tables(collector.results());
  benchmark::Shutdown();
  return 0;
}

}  // namespace quantrain::benchmarks
