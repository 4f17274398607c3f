// Times one training step of the examples' networks, with batch 64 and Adam, in float and with
// quantization. Benchmarks are named train/float|qat/network/threads:N. items_per_second counts the
// multiplications and additions of the convolutions and linear layers. The tables at the end also
// show which operations take the time, and how much memory a step takes. For each line of the
// memory table, a separate process measures the memory.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "benchmarks/loop_trace.hpp"
#include "benchmarks/networks.hpp"
#include "benchmarks/results.hpp"
#include "framework/autograd/ops.hpp"
#include "framework/autograd/profile.hpp"
#include "framework/core/buffer.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/optim/adam.hpp"
#include "quant/prepare/prepare.hpp"

namespace quantrain::benchmarks {
namespace {

constexpr int64_t kBatch = 64;
constexpr int kWarmSteps = 5;
constexpr int kCountedSteps = 10;
constexpr const char* kModes[] = {"float", "qat"};

/// A network that trains on one batch. The learning rate is so small that the network hardly
/// changes, so gradients stay as they are at the start of training.
class Training {
 public:
  Training(const Network& network, bool qat)
      : net_(network.make()), restores_(network.outputs == network.input.elements()) {
    for (int64_t i = 0; i < kBatch; ++i)
      labels_.push_back(static_cast<int32_t>(i * 7 % network.outputs));
    if (qat) quant::prepare_qat(net_, noise(network, 1), quant::QConfig::int8());
    optimizer_.emplace(net_.parameters(), AdamOptions{.learning_rate = 1e-7f});
    for (int i = 0; i < kWarmSteps; ++i) step(noise(network, kBatch));
  }

  void zero_grad() { optimizer_->zero_grad(); }
  Tensor forward(Tensor images) {
    if (restores_) return mse_loss(net_(images), images);
    return cross_entropy(net_(std::move(images)), labels_);
  }
  void update(Tensor loss) {
    loss.backward();
    optimizer_->step();
  }
  void step(Tensor images) {
    zero_grad();
    update(forward(std::move(images)));
  }

 private:
  Sequential net_;
  bool restores_;  // the network is an autoencoder, whose targets are its inputs
  std::vector<int32_t> labels_;
  std::optional<Adam> optimizer_;
};

/// The memory that a step takes after the first steps have filled the pool.
struct Usage {
  double pool_allocations;    ///< blocks taken from the pool per step
  double system_allocations;  ///< of these, blocks that the pool took from the system
  double page_faults;         ///< per step
  double saved_mib;           ///< kept for the backward pass, including the images
  double peak_pool_mib;
  double peak_rss_mib;
};

Usage count_usage(const Network& network, bool qat) {
  Training training(network, qat);
  const auto faults = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage;
  };
  const pool::Counters before = pool::counters();
  const rusage system_before = faults();
  int64_t saved_bytes = 0;
  for (int i = 0; i < kCountedSteps; ++i) {
    training.zero_grad();
    const int64_t in_use = pool::counters().bytes_in_use;
    Tensor loss = training.forward(noise(network, kBatch));
    saved_bytes = pool::counters().bytes_in_use - in_use;
    training.update(std::move(loss));
  }
  const rusage system_after = faults();
  const pool::Counters after = pool::counters();
  const auto per_step = [](auto first, auto last) {
    return static_cast<double>(last - first) / kCountedSteps;
  };
  return {per_step(before.allocations, after.allocations),
          per_step(before.system_allocations, after.system_allocations),
          per_step(system_before.ru_minflt, system_after.ru_minflt),
          static_cast<double>(saved_bytes) / 1048576.0,
          static_cast<double>(after.peak_bytes_in_use) / 1048576.0,
          static_cast<double>(system_after.ru_maxrss) / 1024.0};
}

/// Calls count_usage() in a child process, which has its own pool and peaks. Must be called before
/// any thread starts, because it forks.
Usage count_usage_apart(const Network& network, bool qat) {
  int ends[2];
  if (pipe(ends) != 0) throw Error("train_bench", "cannot create a pipe");
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) throw Error("train_bench", "cannot start a child process");
  if (child == 0) {
    const Usage usage = count_usage(network, qat);
    const bool written = write(ends[1], &usage, sizeof usage) == sizeof usage;
    _exit(written ? 0 : 1);
  }
  Usage usage{};
  close(ends[1]);
  const bool complete = read(ends[0], &usage, sizeof usage) == sizeof usage;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!complete) throw Error("train_bench", "the steps of ", network.name, " failed");
  return usage;
}

std::string name(const char* mode, const Network& network, int threads) {
  return join("train", mode, network.name, threads_part(threads));
}

void add_benchmarks() {
  for (const Network& network : networks()) {
    for (const char* mode : kModes) {
      auto training = std::make_shared<std::unique_ptr<Training>>();
      for (const int threads : thread_counts()) {
        add_benchmark(name(mode, network, threads),
                      training_operations(network, kBatch),
                      [=, &network, qat = mode == kModes[1]] {
                        set_threads(threads);
                        if (!*training) *training = std::make_unique<Training>(network, qat);
                        return [training, images = noise(network, kBatch)] {
                          (*training)->step(images);
                        };
                      });
      }
    }
  }
  add_peaks("gemm_f32");
}

/// Prints the shares of a step's time that the most expensive operations take, with all threads.
void print_shares() {
  constexpr int kProfiledSteps = 50;
  constexpr size_t kShown = 8;
  set_threads(thread_counts().back());
  std::printf("\nShare of a step's time by operation, %d threads, in percent\n",
              thread_counts().back());
  for (const Network& network : networks()) {
    for (const char* mode : kModes) {
      Training training(network, mode == kModes[1]);
      const Tensor images = noise(network, kBatch);
      training.step(images);
      const Profile profile;
      for (int i = 0; i < kProfiledSteps; ++i) training.step(images);
      const std::vector<Profile::Entry> entries = profile.entries();
      double total = 0.0;
      for (const Profile::Entry& entry : entries) total += entry.seconds;
      std::printf("%-21s %-6s", network.name.c_str(), mode);
      double shown = 0.0;
      for (size_t i = 0; i < std::min(kShown, entries.size()); ++i) {
        const double share = 100.0 * entries[i].seconds / total;
        std::printf(" %s %.1f,", entries[i].operation.c_str(), share);
        shown += share;
      }
      std::printf(" others %.1f\n", 100.0 - shown);
    }
  }
}

/// What more threads than this machine's would do, from the work of one.
void print_traces() {
  constexpr int kTraces = 20;
  constexpr size_t kShown = 12;
  for (const int threads : traces()) {
    print_trace_header(threads);
    set_threads(threads);
    for (const Network& network : networks()) {
      for (const char* mode : kModes) {
        Training training(network, mode == kModes[1]);
        const Tensor images = noise(network, kBatch);
        std::vector<std::vector<LoopTrace::Entry>> found;
        for (int i = 0; i < kTraces; ++i) {
          LoopTrace trace(threads);
          training.step(images);
          found.push_back(trace.entries());
        }
        print(join(network.name, mode), found, kShown);
      }
    }
  }
}

void print_tables(const Results& results, const std::vector<Usage>& usages) {
  std::printf("\nSteps of batch %d; limit: the time of the float step at the peak rate\n%-21s",
              static_cast<int>(kBatch),
              "");
  std::printf("%8s %9s %10s %10s %10s %10s %10s\n",
              "threads",
              "MFLOP",
              "limit ms",
              "float ms",
              "qat ms",
              "fl./limit",
              "qat/float");
  for (const Network& network : networks()) {
    const auto operations = static_cast<double>(training_operations(network, kBatch));
    for (const int threads : thread_counts()) {
      const double in_float = results.seconds(name("float", network, threads));
      const double in_qat = results.seconds(name("qat", network, threads));
      if (in_float <= 0.0 && in_qat <= 0.0) continue;
      const double rate = results.rate(peak_name("gemm_f32", threads));
      const double limit = rate > 0.0 ? operations / rate : 0.0;
      std::printf("%-21s%8d %9.0f %10.3f %10.3f %10.3f %10.2f %10.2f\n",
                  network.name.c_str(),
                  threads,
                  operations * 1e-6,
                  limit * 1e3,
                  in_float * 1e3,
                  in_qat * 1e3,
                  limit > 0.0 ? in_float / limit : 0.0,
                  in_float > 0.0 ? in_qat / in_float : 0.0);
    }
  }
  print_shares();
  std::printf("\nEach step, once warm%32s %10s %12s %10s %14s %10s\n",
              "blocks",
              "of system",
              "page faults",
              "saved MiB",
              "peak pool MiB",
              "RSS MiB");
  size_t line = 0;
  for (const Network& network : networks()) {
    for (const char* mode : kModes) {
      const Usage& usage = usages[line++];
      std::printf("%-21s %-22s %14.1f %10.1f %12.1f %10.2f %14.1f %10.1f\n",
                  network.name.c_str(),
                  mode,
                  usage.pool_allocations,
                  usage.system_allocations,
                  usage.page_faults,
                  usage.saved_mib,
                  usage.peak_pool_mib,
                  usage.peak_rss_mib);
    }
  }
}

}  // namespace
}  // namespace quantrain::benchmarks

int main(int argc, char** argv) {
  using namespace quantrain::benchmarks;
  if (!take_threads(argc, argv)) return 2;
  if (!traces().empty()) return print_traces(), 0;
  std::vector<Usage> usages;
  for (const Network& network : networks()) {
    for (const char* mode : kModes) {
      usages.push_back(count_usage_apart(network, mode == kModes[1]));
    }
  }
  add_benchmarks();
  return run(argc, argv, [&](const Results& results) { print_tables(results, usages); });
}
