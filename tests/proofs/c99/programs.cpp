// What scripts/prove c99 compiles: C of layers and random networks, and what the engine computes.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "framework/core/random.hpp"
#include "quant/export/c99/export_c99.hpp"
#include "tests/proofs/c99/layers.hpp"

namespace quantrain::proofs {
namespace {

std::vector<uint8_t> random_samples(const integer::Program& program, int64_t n, uint64_t seed) {
  Random random(seed);
  std::vector<uint8_t> samples;
  for (const int id : program.inputs) {
    for (int64_t i = 0; i < n * program.value(id).shape.elements(); ++i)
      samples.push_back(static_cast<uint8_t>(random.below(256)));
  }
  return samples;
}

void write(const std::string& folder,
           const std::string& name,
           const integer::Program& program,
           int64_t samples,
           bool pack) {
  std::filesystem::create_directories(folder);
  const C99Options options{.name = name, .pack_weights = pack};
  write_c99(folder,
            export_c99(program, options),
            c99_test(program, random_samples(program, samples, 1), options));
}

void write_layers(const std::string& folder, const std::vector<int>& bits) {
  for (const Layer& layer : layers(bits)) {
    write(folder, layer.name, layer.program, 1, true);
    std::printf("%s\t%s\t%d\n", layer.name.c_str(), layer.description.c_str(), layer.bits);
  }
}

}  // namespace
}  // namespace quantrain::proofs

int main(int argc, char** argv) try {
  using namespace quantrain::proofs;
  CLI::App app{"Writes C for the proof of the C99 exporter."};
  app.require_subcommand(1);
  std::string folder;
  std::vector<int> bits{8, 4, 2};
  CLI::App& layers = *app.add_subcommand("layers", "networks of one layer; prints their names");
  layers.add_option("folder", folder)->required();
  layers.add_option("--bits", bits, "of weights")->check(CLI::Range(2, 8))->delimiter(',');
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (app.got_subcommand("layers")) write_layers(folder, bits);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "c99_programs: %s\n", error.what());
  return 1;
}
