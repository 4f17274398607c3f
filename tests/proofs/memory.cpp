#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "framework/core/cpu.hpp"
#include "framework/core/parallel.hpp"
#include "framework/integer/integer_model.hpp"
#include "tests/memory_taken.hpp"
#include "tests/proofs/proofs.hpp"
#include "tests/proofs/table_networks.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::proofs {
namespace {

constexpr int64_t kBatches[] = {1, 64};

/// Microseconds of a call of each model. Calls of both take turns; the fastest counts.
std::pair<double, double> times_of(const IntegerModel& a, const IntegerModel& b, int64_t n) {
  using Clock = std::chrono::steady_clock;
  const std::vector<uint8_t> codes(static_cast<size_t>(n * a.input_shape().elements()), 1);
  std::vector<int32_t> y(static_cast<size_t>(n * a.output_size()));
  double best[2] = {1e12, 1e12};
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(400);
  for (int call = 0; call < 50 || Clock::now() < end; ++call) {
    const Clock::time_point start = Clock::now();
    (call % 2 == 0 ? a : b).run_codes(codes, y);
    const std::chrono::duration<double, std::micro> time = Clock::now() - start;
    if (call > 3) best[call % 2] = std::min(best[call % 2], time.count());
  }
  return {best[0], best[1]};
}

}  // namespace

bool prove_memory() {
  const test::TemporaryFolder folder;
  const std::string path = folder / "model";
  const SerialLoops serial;
  std::printf("\nResident bytes of loaded models, %s; speed of small models against fast ones\n\n",
              std::string(isa_name(chosen_isa())).c_str());
  std::printf(
      "| network | bits | file | fast | small | small / file | RAM | batch 1 | batch 64 |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|\n");
  bool held = true;
  for (const TableNetwork& network : table_networks()) {
    for (const int bits : {8, 4, 2, 1}) {
      quant::QConfig config = quant::QConfig::bits(bits, bits);
      if (network.configure != nullptr) network.configure(config);
      random_model(network, config).save(path);
      const auto file = static_cast<int64_t>(std::filesystem::file_size(path));
      int64_t resident[2];
      { IntegerModel::load(path); }  // what is allocated once
      for (const KeepWeights keep : {KeepWeights::kFast, KeepWeights::kSmall}) {
        const int64_t before = test::resident_bytes();
        const IntegerModel model = IntegerModel::load(path, {}, keep);
        resident[keep == KeepWeights::kSmall] = test::resident_bytes() - before;
      }
      const IntegerModel fast = IntegerModel::load(path);
      const IntegerModel small = IntegerModel::load(path, {}, KeepWeights::kSmall);
      double speed[2];
      for (int i = 0; i < 2; ++i) {
        const auto [own, other] = times_of(fast, small, kBatches[i]);
        speed[i] = own / other;
      }
      const int64_t ram = small.memory(1);
      const bool holds = resident[1] <= file * 115 / 100 + ram;
      std::printf("| %s | %d | %lld | %lld | %lld | %.2f%s | %lld | %.2f | %.2f |\n",
                  network.name.c_str(),
                  bits,
                  static_cast<long long>(file),
                  static_cast<long long>(resident[0]),
                  static_cast<long long>(resident[1]),
                  static_cast<double>(resident[1]) / static_cast<double>(file),
                  holds ? "" : " (more than 1.15 and RAM)",
                  static_cast<long long>(ram),
                  speed[0],
                  speed[1]);
      std::fflush(stdout);
      // The allocator's own bytes differ a little between two loads.
      held = held && holds && resident[1] <= resident[0] + 1024;
    }
  }
  return held;
}

}  // namespace quantrain::proofs
