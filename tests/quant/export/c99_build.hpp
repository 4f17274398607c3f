#pragma once

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "framework/core/random.hpp"
#include "framework/core/shared_array.hpp"
#include "quant/export/c99/export_c99.hpp"
#include "tests/quant/random_network.hpp"
#include "tests/sanitized.hpp"
#include "tests/system.hpp"
#include "tests/temporary_folder.hpp"

// Builds exported networks with the machine's compilers.
namespace quantrain::quant::test {

inline constexpr const char* kWarnings =
    "-std=c99 -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror ";

/// Whether the rest of a test must be left out, because it starts a compiler.
inline bool has_no_compiler() {
  return quantrain::test::left_out_on_windows("it starts a C compiler in a shell");
}

inline std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The compilers with which a test builds C code. With sanitizers in this program, one build
/// without optimization is enough: they do not see the C code, whose compiler has flags of its own.
inline std::vector<std::string> c_compilers(std::vector<std::string> compilers) {
  if (quantrain::test::kSanitized) return {"gcc -O0 "};
  return compilers;
}

/// Exports the program, builds the generated test with this compiler (see c_compilers()) and runs
/// it. Returns an empty string if all samples give the expected outputs, else the status and what
/// the compiler and the test print.
inline std::string build_and_run(const integer::Program& program,
                                 const C99Options& options,
                                 const std::string& compiler,
                                 int64_t samples = 5) {
  const quantrain::test::TemporaryFolder folder;
  write_c99(folder.path(),
            export_c99(program, options),
            c99_test(program, random_samples(program, samples, 1), options));
  if (has_no_compiler()) return "";
  const std::string log = folder / "log", base = folder / options.name;
  const std::string command = c_compilers({compiler})[0] + kWarnings;
  // First the exported file alone: it must compile without the test and without warnings. Then the
  // test, which includes the file, with the compiler's own optimization.
  const std::string run = command + " -O0 -c -o " + base + ".o " + base + ".c >" + log +
                          " 2>&1 && " + command + " -o " + base + " " + base + "_test.c >>" + log +
                          " 2>&1 && " + base + " >>" + log + " 2>&1";
  const int status = std::system(run.c_str());
  return status == 0 ? "" : "status " + std::to_string(status) + ": " + contents(log);
}

/// A product with random weights. Its input and output have zero point 10.
inline integer::QuantizedProduct random_product(int64_t outputs, int64_t length, Random& random) {
  integer::QuantizedProduct product;
  product.zero_x = 10;
  std::vector<int8_t> weights;
  for (int64_t i = 0; i < outputs * length; ++i)
    weights.push_back(static_cast<int8_t>(static_cast<int>(random.below(255)) - 127));
  product.weight = std::move(weights);
  product.bias = SharedArray<int32_t>(std::vector<int32_t>(static_cast<size_t>(outputs), 7));
  const auto channels = static_cast<size_t>(outputs);
  product.output = integer::Requantization{.m0 = std::vector<int32_t>(channels, 1 << 30),
                                           .shift = std::vector<int32_t>(channels, 40),
                                           .y = {10, 10, 255}};
  return product;
}

}  // namespace quantrain::quant::test
