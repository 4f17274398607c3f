#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

#include "framework/core/error.hpp"
#include "framework/integer/integer_model.hpp"
#include "tests/catch.hpp"
#include "tests/quant/export/c99_build.hpp"
#include "tests/temporary_folder.hpp"

// The functions of an exported header that convert raw values to codes, and outputs to real values.
namespace quantrain::quant::test {
namespace {

using quantrain::test::TemporaryFolder;

struct Ends {
  QParams input;
  integer::InputFeatures features = {};
  std::vector<double> scales = {};  ///< of the accumulators; empty: the outputs are codes
};

constexpr int64_t kColumns = 6, kTargets = 3;

integer::Program network(const Ends& ends) {
  Random random(4);
  integer::QuantizedProduct product = random_product(kTargets, kColumns, random);
  product.zero_x = stored_zero_point(ends.input);
  integer::Program program;
  const int64_t features = std::max<int64_t>(1, ends.features.size());
  program.values = {{.name = "x", .shape = {kColumns / features, features}, .params = ends.input},
                    {.name = "y", .shape = {kTargets}, .params = QParams{{}, -1, {0.3f}, {10}}}};
  program.values[0].features = ends.features;
  if (!ends.scales.empty()) {
    product.output.reset();
    program.values[1].params = {};
    program.values[1].scale = ends.scales;
  }
  program.inputs = {0};
  program.outputs = {1};
  program.steps = {{integer::QuantizedLinear{1, kColumns, kTargets, product}, {0}, 1}};
  return program;
}

template <class T>
void write(const std::string& path, const std::vector<T>& values) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(T)));
}

template <class T>
std::vector<T> read(const std::string& path) {
  const std::string bytes = contents(path);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// Encodes each row of the file "rows", and writes its codes, how many values lie outside, and the
// real values of its outputs.
constexpr const char* kMain =
    "#define NET_FLOATS\n#include \"net.h\"\n"
    R"(#include <stdio.h>

static int32_t scratch[NET_SCRATCH_SIZE / 4 + 1];

int main(void) {
  static float row[NET_INPUT_SIZE], real[NET_OUTPUT_SIZE];
  static uint8_t codes[NET_INPUT_SIZE];
  static net_output output[NET_OUTPUT_SIZE];
  FILE *rows = fopen("rows", "rb"), *all = fopen("codes", "wb");
  FILE *counts = fopen("counts", "wb"), *reals = fopen("reals", "wb");
  while (fread(row, sizeof row, 1, rows) == 1) {
    const int32_t outside = net_encode_input(row, codes);
    net_run(codes, output, scratch);
    net_decode_output(output, real);
    fwrite(codes, sizeof codes, 1, all);
    fwrite(&outside, sizeof outside, 1, counts);
    fwrite(real, sizeof real, 1, reals);
  }
  return fclose(all) || fclose(counts) || fclose(reals);
}
)";

/// Values around every code and every tie of the range, and far outside of it.
std::vector<float> rows_for(const Ends& ends) {
  std::vector<float> rows;
  Random random(5);
  const double scale = static_cast<double>(ends.input.scale[0]);
  const auto add = [&](float z) {
    const size_t f = rows.size() % static_cast<size_t>(kColumns);
    const bool has = !ends.features.empty();
    const size_t of = has ? f % ends.features.scale.size() : 0;
    rows.push_back(has ? integer::raw_value(z, ends.features.offset[of], ends.features.scale[of])
                       : z);
  };
  for (int code = -270; code <= 270; ++code) {
    for (const double part : {0.0, 0.5}) {
      const float z = static_cast<float>((code + part) * scale);
      for (const float near :
           {std::nextafter(z, -1e9f), z, std::nextafter(z, 1e9f), z + random.uniform(-1, 1)})
        add(near);
    }
  }
  for (const float far : {1e6f, -1e6f, 1e30f, -1e30f, 0.0f, -0.0f}) add(far);
  rows.resize(rows.size() / kColumns * kColumns);
  return rows;
}

}  // namespace

TEST_CASE("an exported header encodes rows and decodes outputs like the engine", "[quant][c99]") {
  const QType bits8{.bits = 8, .is_signed = false, .narrow = false};
  const std::vector<Ends> networks = {
      {.input = {bits8, -1, {1.0f / 255.0f}, {0}}, .scales = {0.01}},
      {.input = {bits8, -1, {0.1f}, {85}}},
      {.input = {{.bits = 8, .is_signed = true, .narrow = false}, -1, {1.0f / 7.0f}, {-3}},
       .scales = {0.01, 3e-7, 1.0 / 3.0}},
      {.input = {{.bits = 5, .is_signed = false, .narrow = false}, -1, {0.25f}, {7}},
       .features = {{-3.5f, 1e3f, 0.0f}, {0.125f, 300.0f, 1e-3f}},
       .scales = {0.125}},
  };
  std::vector<std::string> compilers = {
      std::string("gcc -O2 ") + kWarnings + "main.c",
      std::string("gcc -O3 -march=native ") + kWarnings + "main.c",
      "g++ -O1 -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror -x c++ main.c -x none"};
  if (quantrain::test::kSanitized) compilers.resize(1);
  for (const Ends& ends : networks) {
    const integer::Program program = network(ends);
    const IntegerModel model(program);
    const std::vector<float> rows = rows_for(ends);
    const size_t n = rows.size() / kColumns;
    std::vector<uint8_t> codes(rows.size());
    std::vector<int32_t> outside(n);
    for (size_t i = 0; i < n; ++i) {
      outside[i] = static_cast<int32_t>(
          integer::encode_input(std::span(rows).subspan(i * kColumns, kColumns),
                                ends.input,
                                ends.features,
                                std::span(codes).subspan(i * kColumns, kColumns),
                                "test"));
    }
    std::vector<float> reals(n * kTargets);
    model.run(rows, reals, Outside::kSaturate);

    const TemporaryFolder folder;
    write_c99(folder.path(), export_c99(program, {.name = "net"}));
    std::ofstream(folder / "main.c") << kMain;
    write(folder / "rows", rows);
    if (has_no_compiler()) return;
    for (const std::string& compiler : compilers) {
      INFO(compiler);
      const std::string run = "cd " + folder.path() + " && gcc -c net.c && " + compiler +
                              " -o net net.o >log 2>&1 && ./net >>log 2>&1";
      REQUIRE((std::system(run.c_str()) == 0 ? "" : contents(folder / "log")) == "");
      CHECK(read<uint8_t>(folder / "codes") == codes);
      CHECK(read<int32_t>(folder / "counts") == outside);
      CHECK(read<float>(folder / "reals") == reals);
    }
  }
}

TEST_CASE("an exported header says which rows hold NaN or infinity, as the library refuses them",
          "[quant][c99]") {
  const QType type{.bits = 8, .is_signed = false, .narrow = false};
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kLargest = std::numeric_limits<float>::max();
  const bool features = GENERATE(false, true);
  Ends ends{.input = {type, -1, {0.1f}, {85}}};
  // With a scale below 1, the largest float becomes infinite.
  if (features) ends.features = {{0.0f, 0.0f, 0.0f}, {1.0f, 1.0f, 0.5f}};
  const integer::Program program = network(ends);
  const std::vector<std::vector<float>> rows{{0.0f, 1e9f, -1e9f, 0.1f, -0.1f, 0.0f},
                                             {0.0f, kNan, 0.0f, 0.0f, 0.0f, 0.0f},
                                             {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, kInfinity},
                                             {-kInfinity, 0.0f, 1e9f, 0.0f, 0.0f, 0.0f},
                                             {0.0f, kLargest, kLargest, 0.0f, 0.0f, 0.0f}};
  std::vector<int32_t> expected;
  std::vector<float> all;
  for (const std::vector<float>& row : rows) {
    std::vector<uint8_t> codes(row.size());
    try {
      expected.push_back(static_cast<int32_t>(
          integer::encode_input(row, ends.input, ends.features, codes, "test")));
    } catch (const DataError&) {
      expected.push_back(-1);
    }
    all.insert(all.end(), row.begin(), row.end());
  }
  CHECK(expected == std::vector<int32_t>{2, -1, -1, -1, features ? -1 : 2});
  const TemporaryFolder folder;
  write_c99(folder.path(), export_c99(program, {.name = "net"}));
  std::ofstream(folder / "main.c") << kMain;
  write<float>(folder / "rows", all);
  if (has_no_compiler()) return;
  for (const char* options : {"-O0 ", "-O2 ", "-O3 -ffast-math "}) {
    INFO(options);
    const std::string run =
        "cd " + folder.path() + " && gcc " + options + kWarnings + "-o net main.c net.c && ./net";
    REQUIRE(std::system(run.c_str()) == 0);
    CHECK(read<int32_t>(folder / "counts") == expected);
    const std::vector<uint8_t> codes = read<uint8_t>(folder / "codes");
    CHECK(std::vector<uint8_t>(codes.begin(), codes.begin() + 3) ==
          std::vector<uint8_t>{85, 255, 0});
  }
}

TEST_CASE("an exported header has no floating point unless it is asked for", "[quant][c99]") {
  const QType type{.bits = 8, .is_signed = false, .narrow = false};
  const integer::Program program = network(
      {.input = {type, -1, {0.1f}, {85}}, .features = {{1, 2, 3}, {1, 2, 3}}, .scales = {1, 2, 3}});
  const TemporaryFolder folder;
  write_c99(folder.path(), export_c99(program, {.name = "net"}));
  if (has_no_compiler()) return;
  const std::string run = "cd " + folder.path() +
                          " && gcc -std=c99 -E -P net.h > text && ! grep -E 'float|double' text && "
                          "gcc -std=c99 -DNET_FLOATS -E -P net.h | grep -q double";
  CHECK(std::system(run.c_str()) == 0);
  const std::string header = contents(folder / "net.h");
  CHECK(header.find("#define NET_INPUT_FEATURES 3\n") != std::string::npos);
  CHECK(header.find("static const float net_input_offset[3] = {\n  1.0f, 2.0f, 3.0f,\n};\n") !=
        std::string::npos);
}

}  // namespace quantrain::quant::test
