// quantrain bench: microseconds of a model at batches and threads, by layer.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>

#include "framework/autograd/node.hpp"
#include "framework/autograd/profile.hpp"
#include "framework/core/cpu.hpp"
#include "framework/core/parallel.hpp"
#include "framework/integer/model_profile.hpp"
#include "layers/evaluation_mode.hpp"
#include "quant/prepare/scopes.hpp"
#include "tools/command.hpp"
#include "tools/flags.hpp"
#include "tools/model.hpp"
#include "tools/output.hpp"

namespace quantrain::tools {
namespace {

struct BenchOptions {
  ModelFlags model;
  std::string batches = "1,64";
  std::string threads = "1";
  int64_t calls = 20;
  std::string keep;
  bool json = false;
};

/// Median microseconds of warm calls.
double time_of(int64_t calls, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  call();
  std::vector<double> times;
  for (int64_t i = 0; i < calls; ++i) {
    const Clock::time_point start = Clock::now();
    call();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

double time_integers(const IntegerModel& model, int64_t n, int64_t calls) {
  const auto codes = random_codes(model, n);
  const std::vector<std::span<const uint8_t>> inputs(codes.begin(), codes.end());
  std::vector<std::vector<int32_t>> results;
  std::vector<std::span<int32_t>> outputs;
  for (size_t i = 0; i < model.output_count(); ++i)
    results.emplace_back(static_cast<size_t>(n * model.output_size(i)));
  for (std::vector<int32_t>& result : results) outputs.push_back(result);
  return time_of(calls, [&] { model.run_codes(inputs, outputs); });
}

void add_layers_of(const Model& model, int64_t n, int64_t calls, Report& report) {
  std::vector<std::vector<Cell>> rows;
  const auto add =
      [&](const std::string& layer, const std::string& kernel, double time, double all) {
        rows.push_back({layer, kernel, Rounded{time, 1}, percent(all > 0.0 ? time / all : 0.0)});
      };
  if (model.integer) {
    const auto codes = random_codes(*model.integer, n);
    const std::vector<std::span<const uint8_t>> inputs(codes.begin(), codes.end());
    const ModelProfile times = profile(*model.integer, inputs, static_cast<int>(calls));
    for (const ModelProfile::Step& step : times.steps)
      add(step.name, step.kernel, step.microseconds, times.microseconds());
  } else {
    const std::vector<Tensor> batch = examples_of(model, Examples::kRandom, n);
    const Profile times;  // it measures what is recorded
    for (int64_t i = 0; i < calls; ++i) (*model.network)(batch);
    double all = 0.0;
    for (const Profile::Entry& entry : times.entries()) all += entry.seconds;
    const double to_call = 1e6 / static_cast<double>(calls);
    for (const Profile::Entry& entry : times.entries())
      add(entry.operation, "float", entry.seconds * to_call, all * to_call);
  }
  report.table("layers", {"layer", "kernel", ">microseconds", ">share"}, std::move(rows));
}

void bench_model(const BenchOptions& options) {
  const std::vector<int64_t> batches =
      integers("--batch", options.batches, 1, IntegerModel::kChunk);
  const std::vector<int64_t> threads = integers("--threads", options.threads, 1, 1024);
  Model model = open_model(options.model);
  if (!options.keep.empty() && !model.integer)
    throw WrongCall("--keep", "is for integer models; ", model.path, " is ", model.description());
  if (options.keep == "small")
    model.integer = IntegerModel(model.integer->program(), KeepWeights::kSmall);
  std::optional<EvaluationMode> evaluation;
  if (model.network) evaluation.emplace(*model.network);
  Report report;
  report.fact("model", model.description());
  report.fact("instructions", std::string(isa_name(chosen_isa())));
  if (model.integer) report.fact("kept_bytes", model.integer->kept_bytes());
  std::vector<std::vector<Cell>> rows;
  for (const int64_t count : threads) {
    set_threads(static_cast<int>(count));
    for (const int64_t n : batches) {
      double time = 0.0;
      if (model.integer) {
        time = time_integers(*model.integer, n, options.calls);
      } else {
        const std::vector<Tensor> batch = examples_of(model, Examples::kRandom, n);
        const NoGrad no_grad;
        time = time_of(options.calls, [&] { (*model.network)(batch); });
      }
      rows.push_back({count, n, Rounded{time, 1}, Rounded{time / static_cast<double>(n), 2}});
    }
  }
  report.note("Times are medians of " + std::to_string(options.calls) + " calls.");
  report.table("calls",
               {">threads", ">batch", ">microseconds", ">microseconds_per_sample"},
               std::move(rows));
  set_threads(static_cast<int>(threads.front()));
  add_layers_of(model, batches.front(), options.calls, report);
  print(report, options.json);
}

}  // namespace

Run bench(CLI::App& line) {
  const auto options = std::make_shared<BenchOptions>();
  options->model.declare(line);
  flag(line, "--batch", options->batches, "N,...", "samples in a call (default 1,64)");
  flag(line, "--threads", options->threads, "N,...", "threads (default 1)");
  flag(line, "--calls", options->calls, 1, 1000000, "a time is the median of N calls (default 20)");
  flag(line,
       "--keep",
       options->keep,
       "fast|small",
       "how an integer model keeps its weights: fast (default), or in fewer bytes of memory");
  line.add_flag("--json", options->json, "print the result as JSON");
  example(line, "  quantrain bench model.safetensors --batch 1,64 --threads 1,2");
  return [options] { bench_model(*options); };
}

}  // namespace quantrain::tools
