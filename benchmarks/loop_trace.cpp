#include "benchmarks/loop_trace.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "framework/core/parallel.hpp"

namespace quantrain::benchmarks {
namespace {

thread_local LoopTrace* running = nullptr;

}  // namespace

// With --wrap=f, the linker passes calls of f to __wrap_f, and calls of __real_f to f.
#define QUANTRAIN_RUN_BLOCKS "_ZN9quantrain6detail10run_blocksElPvPFvS1_lE"
#define QUANTRAIN_MARK "_ZN9quantrain7Profile4markESt17basic_string_viewIcSt11char_traitsIcEES4_"
void run_blocks(int64_t blocks,
                void* context,
                detail::BlockFunction function) asm("__real_" QUANTRAIN_RUN_BLOCKS);
void traced_blocks(int64_t blocks,
                   void* context,
                   detail::BlockFunction function) asm("__wrap_" QUANTRAIN_RUN_BLOCKS);
void mark(std::string_view operation, std::string_view part) asm("__real_" QUANTRAIN_MARK);
void traced_mark(std::string_view operation, std::string_view part) asm("__wrap_" QUANTRAIN_MARK);

void traced_blocks(int64_t blocks, void* context, detail::BlockFunction function) {
  if (running == nullptr) return run_blocks(blocks, context, function);
  LoopTrace* const trace = std::exchange(running, nullptr);  // loops within loops are not traced
  trace->run(blocks, context, function);
  running = trace;
}

void traced_mark(std::string_view operation, std::string_view part) {
  mark(operation, part);
  if (running != nullptr) running->end(std::string(operation).append(part));
}

LoopTrace::LoopTrace(int threads) : threads_(static_cast<size_t>(threads)) { running = this; }
LoopTrace::~LoopTrace() { running = nullptr; }

double LoopTrace::microseconds() {
  const Clock::time_point last = std::exchange(last_, Clock::now());
  return std::chrono::duration<double, std::micro>(last_ - last).count();
}

void LoopTrace::run(int64_t blocks, void* context, void (*function)(void*, int64_t)) {
  now_.outside += microseconds();
  ++now_.loops;
  now_.blocks += blocks;
  std::vector<double> busy(threads_);  // how long each thread has worked
  const SerialLoops within;
  for (int64_t i = 0; i < blocks; ++i) {
    function(context, i);
    const double taken = microseconds();
    now_.serial += taken;
    *std::min_element(busy.begin(), busy.end()) += taken;
  }
  now_.spread += *std::max_element(busy.begin(), busy.end());
  last_ = Clock::now();
}

void LoopTrace::end(const std::string& operation) {
  now_.outside += microseconds();
  auto entry = std::find_if(
      entries_.begin(), entries_.end(), [&](const Entry& e) { return e.operation == operation; });
  if (entry == entries_.end()) entry = entries_.insert(entry, {.operation = operation});
  entry->loops += now_.loops;
  entry->blocks += now_.blocks;
  entry->outside += now_.outside;
  entry->serial += now_.serial;
  entry->spread += now_.spread;
  now_ = {};
  last_ = Clock::now();
}

void print_trace_header(int threads) {
  std::printf("\nMicroseconds as predicted for %d threads from the blocks of one\n", threads);
  std::printf("%-40s %6s %7s %10s %10s %10s %8s\n",
              "",
              "loops",
              "blocks",
              "outside",
              "in loops",
              "spread",
              "speed-up");
}

void print(const std::string& title,
           const std::vector<std::vector<LoopTrace::Entry>>& traces,
           size_t most) {
  std::vector<LoopTrace::Entry> best = traces.front();
  for (const std::vector<LoopTrace::Entry>& trace : traces) {
    for (size_t i = 0; i < std::min(best.size(), trace.size()); ++i) {
      best[i].outside = std::min(best[i].outside, trace[i].outside);
      best[i].serial = std::min(best[i].serial, trace[i].serial);
      best[i].spread = std::min(best[i].spread, trace[i].spread);
    }
  }
  LoopTrace::Entry sum{.operation = title};
  for (const LoopTrace::Entry& entry : best) {
    sum.loops += entry.loops;
    sum.blocks += entry.blocks;
    sum.outside += entry.outside;
    sum.serial += entry.serial;
    sum.spread += entry.spread;
  }
  std::stable_sort(
      best.begin(), best.end(), [](const auto& a, const auto& b) { return a.total() > b.total(); });
  best.resize(std::min(best.size(), most));
  best.insert(best.begin(), sum);
  for (const LoopTrace::Entry& entry : best) {
    std::printf("%-40s %6d %7d %10.1f %10.1f %10.1f %8.2f\n",
                entry.operation.c_str(),
                static_cast<int>(entry.loops),
                static_cast<int>(entry.blocks),
                entry.outside,
                entry.serial,
                entry.spread,
                (entry.outside + entry.serial) / std::max(entry.total(), 1e-9));
  }
}

}  // namespace quantrain::benchmarks
