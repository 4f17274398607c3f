#include <cstdint>
#include <cstdlib>
#include <ostream>
#include <string>

#include "framework/core/system/memory.hpp"
#include "framework/integer/integer_model.hpp"
#include "framework/integer/operation.hpp"
#include "framework/integer/program_file.hpp"
#include "tests/catch.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/memory_taken.hpp"
#include "tests/sanitized.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::integer {
namespace {

using quantrain::test::resident_bytes;
using quantrain::test::TemporaryFolder;
using test::Builder;
using test::kX;
using test::kY;
using test::RandomProduct;

/// examples/networks.hpp: mlp() and cnn(), with random weights of `bits` bits in all layers.
Program mlp(int bits) {
  Builder b;
  int x = b.input({784}, kX);
  int64_t inputs = 784;
  for (const int64_t outputs : {256, 128}) {
    const RandomProduct p({.outputs = outputs, .length = inputs, .x = kX, .weight_bits = bits}, 1);
    x = b.codes("fc", QuantizedLinear{1, inputs, outputs, p.behind(kX)}, {x}, {outputs}, kX);
    inputs = outputs;
  }
  const RandomProduct last({.outputs = 10, .length = inputs, .x = kX, .weight_bits = bits}, 1);
  b.program.outputs = {
      b.accumulators("out", QuantizedLinear{1, inputs, 10, last.product}, {x}, {10}, last.scale)};
  return b.program;
}

Program cnn(int bits) {
  Builder b;
  int x = b.input({28, 28, 1}, kX);
  kernels::Conv2dShape s{.h = 28, .w = 28, .c = 1, .o = 32, .kh = 3, .kw = 3};
  for (const int64_t outputs : {32, 64}) {
    s.o = outputs;
    const RandomProduct p(
        {.outputs = outputs, .length = s.reduction(), .x = kX, .weight_bits = bits}, 1);
    x = b.codes("conv", QuantizedConv2d{s, p.behind(kX)}, {x}, {s.oh(), s.ow(), outputs}, kX);
    s = {.h = s.oh(), .w = s.ow(), .c = outputs, .o = outputs, .kh = 3, .kw = 3};
  }
  x = b.codes(
      "max", QuantizedMaxPool2d{test::pool_shape(24, 24, 64, 2, 2, 0)}, {x}, {12, 12, 64}, kX);
  const RandomProduct hidden({.outputs = 128, .length = 9216, .x = kX, .weight_bits = bits}, 1);
  x = b.codes("fc", QuantizedLinear{1, 9216, 128, hidden.behind(kX)}, {x}, {128}, kX);
  const RandomProduct last({.outputs = 10, .length = 128, .x = kX, .weight_bits = bits}, 1);
  b.program.outputs = {
      b.accumulators("out", QuantizedLinear{1, 128, 10, last.product}, {x}, {10}, last.scale)};
  return b.program;
}

/// Bytes of panels that the pool maps on their own, so that resident_bytes() lacks them: fast ones
/// of a large page or more. With two bytes for each weight, those of cnn()'s large layer.
int64_t mapped_panels(const Program& program) {
  int64_t bytes = 0;
  for (const Step& step : program.steps) {
    const QuantizedProduct* const p = product(step.operation);
    if (p == nullptr || p->weight.keep() == KeepWeights::kSmall) continue;
    const int64_t panels = p->planned(weights_shape(step.operation)).bytes();
    if (panels >= static_cast<int64_t>(system::large_page())) bytes += panels;
  }
  return bytes;
}

}  // namespace

TEST_CASE("a loaded model takes little more memory than its file", "[integer][memory][serial]") {
  if (quantrain::test::kSanitized) return;  // sanitizers have an allocator of their own
  if (resident_bytes() == 0) return;        // the system does not say
  const TemporaryFolder folder;
  const std::string path = folder / "model";
  for (const auto make : {mlp, cnn}) {
    const std::string name = make == mlp ? "mlp" : "cnn";
    for (const int bits : {8, 4, 2, 1}) {
      IntegerModel(make(bits)).save(path);
      const auto file = static_cast<int64_t>(quantrain::test::read_bytes(path).size());
      { IntegerModel::load(path); }  // what is allocated once
      for (const KeepWeights keep : {KeepWeights::kFast, KeepWeights::kSmall}) {
        const bool small = keep == KeepWeights::kSmall;
        const int64_t before = resident_bytes();
        const IntegerModel model = IntegerModel::load(path, {}, keep);
        const int64_t resident = resident_bytes() - before + mapped_panels(model.program());
        const double ratio = static_cast<double>(resident) / static_cast<double>(file);
        INFO(name << ", " << bits << " bits, " << (small ? "small" : "fast") << ": file " << file
                  << ", resident " << resident << " = " << ratio << " of the file; kept_bytes() "
                  << model.kept_bytes());  // option -s shows it
        // Not counted: what malloc() adds, and what it had before.
        CHECK(std::abs(model.kept_bytes() - resident) <= resident / 50 + 6000);
        // Panels of instruction sets that multiply pairs of 16 bits take two bytes for each weight.
        const kernels::PanelLayout layout =
            kernels::PackedWeightsS8::planned({.c = 64, .o = 64}).layout();
        if (bits == 8 && (layout.pairs || layout.planes)) continue;
        if (bits == 8 || small) CHECK(resident <= file * 115 / 100 + model.memory(1));
      }
    }
  }
}

TEST_CASE("a small model keeps 16 bytes for each output besides the weights",
          "[integer][memory][serial]") {
  if (quantrain::test::kSanitized || resident_bytes() == 0) return;  // as above
  const TemporaryFolder folder;
  const auto resident = [&](int64_t outputs) {
    Builder b;
    const RandomProduct p({.outputs = outputs, .length = 32, .x = kX, .weight_bits = 1}, 1);
    const int x = b.input({32}, kX);
    b.program.outputs = {
        b.codes("fc", QuantizedLinear{1, 32, outputs, p.behind(kX)}, {x}, {outputs}, kX)};
    save_program(folder / "model", b.program);
    b = {};
    const int64_t before = resident_bytes();
    const IntegerModel model = IntegerModel::load(folder / "model", {}, KeepWeights::kSmall);
    return resident_bytes() - before;
  };
  resident(1024);  // what is allocated once
  // 32 weights of one bit take 4 bytes.
  CHECK(resident(3072) - resident(1024) <= 2048 * (4 + 16) + 256);
}

}  // namespace quantrain::integer
