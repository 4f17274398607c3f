#include "quant/export/c99/export_c99.hpp"

#include <cstdlib>
#include <fstream>

#include "framework/core/random.hpp"
#include "tests/catch.hpp"
#include "tests/quant/random_network.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::quant::test {
namespace {

using quantrain::test::TemporaryFolder;

constexpr const char* kWarnings = "-std=c99 -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror ";

std::vector<uint8_t> random_samples(const integer::Program& program, int64_t n, uint64_t seed) {
  Random random(seed);
  std::vector<uint8_t> samples;
  for (const int id : program.inputs) {
    for (int64_t i = 0; i < n * program.value(id).shape.elements(); ++i)
      samples.push_back(static_cast<uint8_t>(random.below(256)));
  }
  return samples;
}

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Exports, builds the generated test with these flags and runs it; what it and the compiler print,
/// or nothing if all samples are equal.
std::string build_and_run(const integer::Program& program,
                          const C99Options& options,
                          const std::string& command,
                          int64_t samples = 5) {
  const TemporaryFolder folder;
  write_c99(folder.path(),
            export_c99(program, options),
            c99_test(program, random_samples(program, samples, 1), options));
  const std::string log = folder / "log", base = folder / options.name;
  // The library's half on its own, as a user compiles it; then the test.
  const std::string run = command + " -c -o " + base + ".o " + base + ".c >" + log + " 2>&1 && " +
                          command + " -o " + base + " " + base + "_test.c >>" + log + " 2>&1 && " +
                          base + " >>" + log + " 2>&1";
  const int status = std::system(run.c_str());
  return status == 0 ? "" : "status " + std::to_string(status) + ": " + contents(log);
}

}  // namespace

TEST_CASE("exported random networks give the engine's integers", "[quant][c99]") {
  const char* const compilers[] = {
      "gcc -O0 -DCORE_PLAIN=1 ",
      "gcc -O3 ",
      "gcc -O2 -mavx2 ",
      "gcc -O1 -fsanitize=address,undefined -fno-sanitize-recover=all "};
  for (uint64_t seed = 0; seed < 12; ++seed) {
    RandomNetwork network = random_network(seed);
    INFO("seed " << seed << ": " << network.description);
    const IntegerModel model = train_and_convert(network, seed);
    const C99Options options{.name = "net", .pack_weights = seed % 3 != 0};
    CHECK(build_and_run(model.program(), options, compilers[seed % 4] + std::string(kWarnings)) ==
          "");
  }
}

}  // namespace quantrain::quant::test
