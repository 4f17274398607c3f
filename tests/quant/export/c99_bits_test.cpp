// Weights of 1 bit in exported C.   docs/quantization.md (27)
#include <algorithm>
#include <limits>

#include "quant/lowering/convert.hpp"
#include "tests/catch.hpp"
#include "tests/quant/export/c99_build.hpp"
#include "tests/quant/networks.hpp"
#include "tests/sanitized.hpp"

namespace quantrain::quant::test {
namespace {

/// Without vectors and without an instruction that counts bits, with sanitizers; with both.
const std::vector<std::string> kCompilers = {
    "gcc -O1 -DCORE_PLAIN=1 -fsanitize=address,undefined -fno-sanitize-recover=all ",
    "gcc -O2 -mavx2 -mpopcnt "};

enum class Output { kSums, kCodes, kBit };
constexpr Output kOutputs[] = {Output::kBit, Output::kCodes, Output::kSums};

QParams bit_params() {
  return {.type = {.bits = 1}, .axis = -1, .scale = {0.5f}, .zero_point = {0}};
}

/// Signs as weights. Codes of 1 bit have the zero point 0, those of 8 bits 10.
integer::QuantizedProduct product_of_signs(
    int64_t outputs, int64_t length, int64_t x_bits, Output output, Random& random) {
  integer::QuantizedProduct p;
  p.x_bits = x_bits;
  p.zero_x = x_bits == 1 ? 0 : 10;
  std::vector<int8_t> weights(static_cast<size_t>(outputs * length));
  for (int8_t& w : weights) w = random.below(2) == 0 ? int8_t{-1} : int8_t{1};
  // All weights of the first output are +1, and those of the last one -1.
  std::fill_n(weights.begin(), length, int8_t{1});
  if (outputs > 1) std::fill_n(weights.end() - length, length, int8_t{-1});
  p.weight = {std::move(weights), 1};
  std::vector<int32_t> bias(static_cast<size_t>(outputs));
  for (int32_t& b : bias) b = static_cast<int32_t>(random.below(7) - 3);
  p.bias = std::move(bias);
  if (output == Output::kSums) return p;
  std::vector<int32_t> m0;
  std::vector<int32_t> shift;
  for (int64_t o = 0; o < outputs; ++o) {
    m0.push_back((1 << 30) + static_cast<int32_t>(random.below(1 << 30)));
    shift.push_back(static_cast<int32_t>(31 + random.below(4)));
  }
  const StoredOutput y =
      output == Output::kCodes ? StoredOutput{10, 10, 250} : StoredOutput{0, 0, 1};
  p.output = integer::Requantization{std::move(m0), std::move(shift), y};
  return p;
}

void add_step(integer::Program& program,
              integer::Operation operation,
              const Shape& x,
              const Shape& y,
              int64_t x_bits,
              Output output) {
  const QParams bytes{.type = {}, .scale = {0.1f}, .zero_point = {10}};
  const auto id = static_cast<int>(program.values.size());
  program.values.push_back({.name = {}, .shape = x, .params = x_bits == 1 ? bit_params() : bytes});
  program.values.push_back({.name = {}, .shape = y});
  if (output == Output::kSums) program.values.back().scale = {0.1};
  if (output == Output::kCodes) program.values.back().params = bytes;
  if (output == Output::kBit) program.values.back().params = bit_params();
  program.inputs.push_back(id);
  program.outputs.push_back(id + 1);
  program.steps.push_back({std::move(operation), {id}, id + 1});
}

/// A program's inputs come first.
integer::Program in_order(const integer::Program& program) {
  std::vector<int> place(program.values.size());
  integer::Program result;
  for (const bool inputs : {true, false}) {
    for (size_t i = inputs ? 0 : 1; i < program.values.size(); i += 2) {
      place[i] = static_cast<int>(result.values.size());
      result.values.push_back(program.values[i]);
    }
  }
  for (const int id : program.inputs) result.inputs.push_back(place[static_cast<size_t>(id)]);
  for (const int id : program.outputs) result.outputs.push_back(place[static_cast<size_t>(id)]);
  for (integer::Step step : program.steps) {
    step.inputs[0] = place[static_cast<size_t>(step.inputs[0])];
    step.output = place[static_cast<size_t>(step.output)];
    result.steps.push_back(std::move(step));
  }
  integer::validate(result);
  return result;
}

}  // namespace

TEST_CASE("linear layers with weights of 1 bit have a C form at every length",
          "[quant][c99][serial]") {
  for (const int64_t x_bits : {1, 8}) {
    Random random(static_cast<uint64_t>(x_bits));
    integer::Program program;
    size_t kind = 0;
    // A word has 32 bits; counts of 30 words are added up before they could overflow.
    for (const int64_t length : {3, 9, 17, 32, 33, 64, 100, 961, 2050}) {
      for (const int64_t rows : {1, 2, 3}) {  // two rows are computed at a time
        const int64_t outputs = std::vector<int64_t>{1, 4, 7, 20}[kind % 4];
        const Output output = kOutputs[(kind + kind / 3) % 3];
        ++kind;
        add_step(program,
                 integer::QuantizedLinear{
                     .rows = rows,
                     .inputs = length,
                     .outputs = outputs,
                     .product = product_of_signs(outputs, length, x_bits, output, random)},
                 {rows, length},
                 {rows, outputs},
                 x_bits,
                 output);
      }
    }
    const integer::Program ordered = in_order(program);
    const std::string source = export_c99(ordered, {.name = "bits"}).source;
    for (const char* const form :
         {"bits_pair(", "bits_codes_pair(", "bits_pair_1(", "bits_sums_one("})
      CHECK((source.find(form) != std::string::npos) == (x_bits == 1));
    CHECK((source.find("product_pair_1bit(") != std::string::npos) == (x_bits == 8));
    for (const std::string& compiler : c_compilers(kCompilers)) {
      INFO(x_bits << " bits, " << compiler);
      CHECK(build_and_run(ordered, {.name = "bits"}, compiler) == "");
    }
  }
}

TEST_CASE("convolutions with weights of 1 bit have a C form", "[quant][c99][serial]") {
  for (const int64_t x_bits : {1, 8}) {
    Random random(static_cast<uint64_t>(x_bits));
    integer::Program program;
    size_t kind = 0;
    for (const int64_t channels : {1, 4, 6, 32}) {
      for (const int64_t groups : {1, 2}) {
        if (channels % groups != 0 || channels == groups) continue;
        for (const int64_t kernel : {1, 3}) {
          kernels::Conv2dShape s{.h = 5, .w = 6, .c = channels, .o = 6, .kh = kernel, .kw = kernel};
          s.groups = groups;
          s.pad_h = s.pad_w = kernel / 2;
          s.stride_w = 1 + static_cast<int64_t>(kind % 2);
          s.dilation_h = kernel == 3 ? 1 + static_cast<int64_t>(kind / 2 % 2) : 1;
          const Output output = kOutputs[(kind + kind / 3) % 3];
          ++kind;
          add_step(program,
                   integer::QuantizedConv2d{
                       s, product_of_signs(6, s.reduction(), x_bits, output, random)},
                   {5, 6, channels},
                   {s.oh(), s.ow(), 6},
                   x_bits,
                   output);
        }
      }
    }
    const integer::Program ordered = in_order(program);
    for (const std::string& compiler : c_compilers(kCompilers)) {
      INFO(x_bits << " bits, " << compiler);
      CHECK(build_and_run(ordered, {.name = "bits"}, compiler) == "");
    }
  }
}

TEST_CASE("comparisons of 1-bit outputs equal requantization", "[quant][c99]") {
  // 40 outputs of the same weights have all biases around each threshold, with ties, multipliers of
  // 0, and sums that are always above or always below.
  constexpr int64_t kLength = 12, kChannels = 40;
  Random random(5);
  integer::Program program;
  for (const Multiplier& multiplier : {Multiplier{1 << 30, 32},
                                       Multiplier{1 << 30, 30},
                                       Multiplier{1 << 30, 31},
                                       Multiplier{1 << 30, 1},
                                       Multiplier{1 << 30, 62},
                                       Multiplier{0, 62},
                                       Multiplier{1431655766, 33}}) {
    for (const StoredOutput& y : {StoredOutput{0, 0, 1},
                                  StoredOutput{10, 3, 4},
                                  StoredOutput{10, 10, 11},
                                  StoredOutput{10, 20, 21}}) {
      const bool bit = y.zero_point == 0;
      integer::QuantizedProduct p =
          product_of_signs(kChannels, kLength, 1, bit ? Output::kBit : Output::kCodes, random);
      std::vector<int32_t> bias(kChannels);
      for (int64_t o = 0; o < kChannels; ++o)
        bias[static_cast<size_t>(o)] = static_cast<int32_t>(o - 20);
      bias[0] = 1 << 30;
      bias[1] = -(1 << 30);
      p.bias = std::move(bias);
      p.output->y = y;
      p.output->m0 = std::vector<int32_t>(kChannels, multiplier.m0);
      p.output->shift = std::vector<int32_t>(kChannels, multiplier.shift);
      add_step(program,
               integer::QuantizedLinear{
                   .rows = 1, .inputs = kLength, .outputs = kChannels, .product = std::move(p)},
               {kLength},
               {kChannels},
               1,
               bit ? Output::kBit : Output::kCodes);
    }
  }
  const integer::Program ordered = in_order(program);
  // No step has a table of multipliers.
  CHECK(export_c99(ordered, {.name = "bits"}).source.find("multiplier_") == std::string::npos);
  CHECK(build_and_run(ordered, {.name = "bits"}, kCompilers[0], 40) == "");
}

TEST_CASE("weights of 1 bit take one bit in exported tables", "[quant][c99]") {
  Random random(3);
  integer::Program program;
  add_step(program,
           integer::QuantizedLinear{.rows = 1,
                                    .inputs = 256,
                                    .outputs = 16,
                                    .product = product_of_signs(16, 256, 1, Output::kBit, random)},
           {256},
           {16},
           1,
           Output::kBit);
  // 512 bytes of weights, and a threshold of 4 bytes for each output.
  CHECK(export_c99(in_order(program), {.name = "bits"}).table_bytes == 512 + 64);
  program.steps.clear();
  program.values.clear();
  program.inputs.clear();
  program.outputs.clear();
  add_step(
      program,
      integer::QuantizedLinear{.rows = 1,
                               .inputs = 256,
                               .outputs = 16,
                               .product = product_of_signs(16, 256, 8, Output::kCodes, random)},
      {256},
      {16},
      8,
      Output::kCodes);
  // Start, multiplier and shift of each output take 9 bytes.
  CHECK(export_c99(in_order(program), {.name = "bits"}).table_bytes == 512 + 144);
}

TEST_CASE("exported random networks of 1 bit give the engine's integers", "[quant][c99][serial]") {
  for (uint64_t seed = 0; seed < (quantrain::test::kSanitized ? 2 : 6); ++seed) {
    RandomNetwork network = random_network(seed);
    LayerConfig& model = network.config.model;
    model.weight.bits = 1;
    model.weight.narrow = true;
    // Weights of 1 bit with activations of 1 and of 8 bits, and a mixture.
    model.activation.bits = seed % 3 == 1 ? 8 : 1;
    model.activation.is_signed = false;
    if (seed % 3 == 2) {
      network.config.types["Linear"] = model;
      network.config.types["Linear"].activation.bits = 4;
    }
    INFO("seed " << seed << ": " << network.description);
    const IntegerModel converted = train_and_convert(network, seed);
    CHECK(build_and_run(
              converted.program(),
              {.name = "net"},
              c_compilers(kCompilers)[seed % kCompilers.size() % c_compilers(kCompilers).size()]) ==
          "");
  }
}

}  // namespace quantrain::quant::test
