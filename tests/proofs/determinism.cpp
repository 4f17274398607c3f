#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "framework/core/cpu.hpp"
#include "framework/core/parallel.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "tests/proofs/proofs.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::proofs {
namespace {

struct Machine {
  Isa isa;
  int threads;
};

/// Returns the usable instruction sets of x86-64 with fused multiply-adds, which all compute the
/// same floats. If there are none, returns only the chosen set. (On Arm, all sets share the float
/// kernels.)
std::vector<Isa> fused_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : usable_isas()) {
    if (isa == Isa::kAvx2 || isa == Isa::kAvx512Bw || isa == Isa::kAvx512Vnni || isa == Isa::kAmx) {
      isas.push_back(isa);
    }
  }
  if (isas.empty()) isas.push_back(chosen_isa());
  return isas;
}

std::vector<uint8_t> saved_model(const examples::Network& network,
                                 const Images& images,
                                 const Training& training) {
  constexpr uint64_t kSeed = 0;
  const Tensor example = example_of(images);
  Sequential net = train_float(network, images, training, kSeed);
  quant::prepare_qat(net, example, quant::QConfig::int8());
  train_on(net, images, training, kSeed);
  const test::TemporaryFolder folder;
  quant::convert(net, example).save(folder / "model");
  return test::read_bytes(folder / "model");
}

}  // namespace

bool prove_determinism(const Subjects& subjects, const Training& training) {
  const Isa chosen = chosen_isa();
  const int threads_before = threads();
  std::vector<Machine> machines;
  for (const Isa isa : fused_isas()) machines.push_back({isa, 1});
  machines.push_back({machines.back().isa, 2});

  std::printf("The saved model after float training and QAT:\n%-16s %-14s %-12s %7s %10s  %s\n",
              "data",
              "network",
              "kernels",
              "threads",
              "bytes",
              "equal");
  bool equal = true;
  for (const Images& images : subjects.data) {
    for (const examples::Network& network : subjects.networks) {
      std::vector<uint8_t> first;
      for (const Machine& machine : machines) {
        set_isa(machine.isa);
        set_threads(machine.threads);
        const std::vector<uint8_t> model = saved_model(network, images, training);
        if (first.empty()) first = model;
        std::printf("%-16s %-14s %-12s %7d %10zu  %s\n",
                    images.name.c_str(),
                    network.name.c_str(),
                    std::string(isa_name(machine.isa)).c_str(),
                    machine.threads,
                    model.size(),
                    model == first ? "yes" : "NO");
        std::fflush(stdout);
        equal = equal && model == first;
      }
    }
  }
  if (machines.size() == 2) {
    std::printf(
        "The runs differ only in the number of threads: this processor has at most one instruction "
        "set with fused multiply-adds and float kernels of its own.\n");
  }
  set_isa(chosen);
  set_threads(threads_before);
  return equal;
}

}  // namespace quantrain::proofs
