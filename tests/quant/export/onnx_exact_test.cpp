#include "framework/core/error.hpp"
#include "layers/onnx/reader.hpp"
#include "quant/export/onnx/export_onnx.hpp"
#include "quant/export/onnx/load_exported.hpp"
#include "tests/catch.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/quant/export/onnx_run.hpp"
#include "tests/sanitized.hpp"

namespace quantrain::quant::test {
namespace {

using quantrain::test::TemporaryFolder;

}  // namespace

// Tests with the tag [onnx_runtime] need Node and ONNX Runtime: ctest runs them where both are
// installed.

TEST_CASE("ONNX Runtime computes the engine's integers of every step of random programs",
          "[.][onnx_runtime]") {
  OnnxCases cases;
  cases.add(integer::test::every_operation(), 3, {.all_steps = true});
  for (uint64_t seed = 0; seed < 30; ++seed)
    cases.add(integer::test::random_program(seed), 2, {.all_steps = true});
  CHECK(cases.run() == "");
}

TEST_CASE("ONNX Runtime computes the engine's integers of random networks", "[.][onnx_runtime]") {
  OnnxCases cases;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    RandomNetwork network = random_network(seed);
    cases.add(train_and_convert(network, seed).program(), 5, {.all_steps = seed % 2 == 0});
  }
  CHECK(cases.run() == "");
}

TEST_CASE("an exported program is loaded again with the same hash", "[quant][onnx]") {
  const TemporaryFolder folder;
  for (const OnnxForm form : {OnnxForm::kExact, OnnxForm::kQdq}) {
    const integer::Program every = integer::test::every_operation();
    export_onnx(every, folder / "every.onnx", {.form = form});
    CHECK(is_exported_onnx(folder / "every.onnx"));
    CHECK(load_exported_onnx(folder / "every.onnx").program() == every);
    for (uint64_t seed = 0; seed < 10; ++seed) {
      const integer::Program program = integer::test::random_program(seed);
      export_onnx(program, folder / "random.onnx", {.form = form});
      CHECK(load_exported_onnx(folder / "random.onnx").program() == program);
    }
  }
}

}  // namespace quantrain::quant::test
