// Times the examples' networks in float and in integers. An integer call goes from bytes to integer
// logits. Benchmarks are named inference/float|integer/network/batch:B/threads:N. items_per_second
// counts the layers' multiplications and additions.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>

#include "benchmarks/loop_trace.hpp"
#include "benchmarks/networks.hpp"
#include "benchmarks/results.hpp"
#include "framework/autograd/node.hpp"
#include "framework/core/parallel.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"

namespace quantrain::benchmarks {
namespace {

constexpr int64_t kBatches[] = {1, 64, 256};
constexpr int64_t kTracedBatch = 64;
constexpr int kTraces = 50;

/// A network and its integer form, ready to be called.
class Deployed {
 public:
  explicit Deployed(const Network& network) : net_(network.make()), model_(convert(network)) {
    net_.eval();
    const int64_t most = *std::max_element(std::begin(kBatches), std::end(kBatches));
    for (const int64_t batch : kBatches) images_.emplace(batch, noise(network, batch));
    bytes_.resize(static_cast<size_t>(images_.at(most).elements()));
    model_.quantize_input({images_.at(most).data(), bytes_.size()}, bytes_);
    logits_.resize(static_cast<size_t>(most * model_.output_size()));
  }

  void call_float(int64_t batch) {
    const NoGrad no_grad;
    net_(images_.at(batch));
  }
  void call_integer(int64_t batch) {
    const auto n = static_cast<size_t>(batch);
    const size_t bytes = n * static_cast<size_t>(model_.input_shape().elements());
    const size_t logits = n * static_cast<size_t>(model_.output_size());
    model_.run_codes(std::span<const uint8_t>(bytes_).first(bytes),
                     std::span(logits_).first(logits));
  }

  /// Runs one image, and calls end(layer) after each layer.
  template <class End>
  void trace_layers(const End& end) const {
    const uint8_t* const inputs[] = {bytes_.data()};
    const integer::Program& program = model_.program();
    model_.trace(1, inputs, [&](size_t layer, const void*) {
      const integer::Step& step = program.steps[layer];
      end(program.value(step.output).name + " " + std::string(kernel(step.operation)));
    });
  }

  /// Name and shortest time in microseconds of each integer layer, in execution order.
  std::vector<std::pair<std::string, double>> trace() {
    using Clock = std::chrono::steady_clock;
    std::vector<std::pair<std::string, double>> times;
    const integer::Program& program = model_.program();
    for (const integer::Step& step : program.steps) {
      times.emplace_back(
          program.value(step.output).name + " " + std::string(kernel(step.operation)), 1e9);
    }
    const uint8_t* const inputs[] = {bytes_.data()};
    for (int i = 0; i < kTraces; ++i) {
      Clock::time_point last = Clock::now();
      model_.trace(kTracedBatch, inputs, [&](size_t layer, const void*) {
        const Clock::time_point now = Clock::now();
        const double taken = std::chrono::duration<double, std::micro>(now - last).count();
        times[layer].second = std::min(times[layer].second, taken);
        last = now;
      });
    }
    return times;
  }

 private:
  static IntegerModel convert(const Network& network) {
    Sequential net = network.make();
    const Tensor example = noise(network, 64);
    quant::prepare_ptq(net, example, quant::QConfig::int8());
    quant::calibrate(net, example);
    return quant::convert(net, example);
  }

  Sequential net_;
  IntegerModel model_;
  std::map<int64_t, Tensor> images_;
  std::vector<uint8_t> bytes_;
  std::vector<int32_t> logits_;
};

using DeployedNetworks = std::vector<std::shared_ptr<Deployed>>;

std::string name(const char* kind, const Network& network, int64_t batch, int threads) {
  return join(
      "inference", kind, network.name, "batch:" + std::to_string(batch), threads_part(threads));
}

void add_benchmarks(const DeployedNetworks& deployed) {
  for (size_t i = 0; i < deployed.size(); ++i) {
    const Network& network = networks()[i];
    for (const int64_t batch : kBatches) {
      const int64_t operations = inference_operations(network, batch);
      for (const int threads : thread_counts()) {
        add_benchmark(name("float", network, batch, threads),
                      operations,
                      [threads, batch, model = deployed[i]] {
                        set_threads(threads);
                        return [model, batch] { model->call_float(batch); };
                      });
        add_benchmark(name("integer", network, batch, threads),
                      operations,
                      [threads, batch, model = deployed[i]] {
                        set_threads(threads);
                        return [model, batch] { model->call_integer(batch); };
                      });
      }
    }
  }
  add_peaks("gemm_f32");
  add_peaks("gemm_u8s8");
}

/// What more threads than this machine's would do, from the work of one.
void print_traces(const DeployedNetworks& deployed) {
  constexpr size_t kShown = 12;
  for (const int threads : traces()) {
    print_trace_header(threads);
    set_threads(threads);
    for (size_t i = 0; i < deployed.size(); ++i) {
      for (const int64_t batch : kBatches) {
        std::vector<std::vector<LoopTrace::Entry>> floats;
        std::vector<std::vector<LoopTrace::Entry>> integers;
        for (int k = 0; k < kTraces; ++k) {
          LoopTrace trace(threads);
          deployed[i]->call_integer(batch);
          trace.end("all");
          integers.push_back(trace.entries());
        }
        for (int k = 0; k < kTraces; ++k) {
          LoopTrace trace(threads);
          deployed[i]->call_float(batch);
          trace.end("all");
          floats.push_back(trace.entries());
        }
        const std::string name = join(networks()[i].name, "batch:" + std::to_string(batch));
        print(join(name, "float"), floats, 0);
        print(join(name, "integer"), integers, 0);
        if (batch > 1) continue;
        integers.clear();
        for (int k = 0; k < kTraces; ++k) {
          LoopTrace trace(threads);
          deployed[i]->trace_layers([&](const std::string& layer) { trace.end(layer); });
          integers.push_back(trace.entries());
        }
        print(name, integers, kShown);
      }
    }
  }
}

void print_tables(const Results& results, const DeployedNetworks& deployed) {
  std::printf("\nMicroseconds per call; limit: the time at the peak rate\n");
  std::printf("%-21s %8s %8s %12s %12s %12s %12s %12s\n",
              "",
              "batch",
              "threads",
              "float limit",
              "float",
              "int8 limit",
              "int8",
              "float/int8");
  for (const Network& network : networks()) {
    for (const int64_t batch : kBatches) {
      const auto operations = static_cast<double>(inference_operations(network, batch));
      for (const int threads : thread_counts()) {
        const auto limit = [&](const char* family) {
          const double rate = results.rate(peak_name(family, threads));
          return rate > 0.0 ? operations / rate : 0.0;
        };
        const double floats = results.seconds(name("float", network, batch, threads));
        const double integers = results.seconds(name("integer", network, batch, threads));
        if (floats <= 0.0 && integers <= 0.0) continue;
        std::printf("%-21s %8d %8d %12.1f %12.1f %12.1f %12.1f %12.2f\n",
                    network.name.c_str(),
                    static_cast<int>(batch),
                    threads,
                    limit("gemm_f32") * 1e6,
                    floats * 1e6,
                    limit("gemm_u8s8") * 1e6,
                    integers * 1e6,
                    integers > 0.0 ? floats / integers : 0.0);
      }
    }
  }
  std::printf(
      "\nInteger layers at batch %d, %d threads: shortest time in microseconds, and share\n",
      static_cast<int>(kTracedBatch),
      thread_counts().back());
  set_threads(thread_counts().back());
  for (size_t i = 0; i < deployed.size(); ++i) {
    const auto times = deployed[i]->trace();
    double sum = 0.0;
    for (const auto& [layer, microseconds] : times) sum += microseconds;
    std::printf("%s: %.1f\n", networks()[i].name.c_str(), sum);
    for (const auto& [layer, microseconds] : times) {
      std::printf(
          "  %-44s %10.1f %6.1f %%\n", layer.c_str(), microseconds, 100.0 * microseconds / sum);
    }
  }
}

}  // namespace
}  // namespace quantrain::benchmarks

int main(int argc, char** argv) {
  using namespace quantrain::benchmarks;
  if (!take_threads(argc, argv)) return 2;
  DeployedNetworks deployed;
  for (const Network& network : networks()) deployed.push_back(std::make_shared<Deployed>(network));
  if (!traces().empty()) return print_traces(deployed), 0;
  add_benchmarks(deployed);
  return run(argc, argv, [&](const Results& results) { print_tables(results, deployed); });
}
