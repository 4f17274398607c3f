#include "quant/export/onnx/export_onnx.hpp"
#include "tests/catch.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/quant/export/onnx_run.hpp"

namespace quantrain::quant::test {

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

}  // namespace quantrain::quant::test
