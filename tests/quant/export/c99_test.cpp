#include "quant/export/c99/export_c99.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "quant/lowering/convert.hpp"
#include "tests/catch.hpp"
#include "tests/quant/export/c99_build.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/random_network.hpp"
#include "tests/sanitized.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::quant::test {
namespace {

using quantrain::test::TemporaryFolder;

/// The layers of MLPerf Tiny's keyword spotting network: a convolution; four blocks, each of a
/// depthwise and a pointwise convolution; an average pool; a linear layer.
integer::Program ds_cnn() {
  const QParams params{.type = {}, .scale = {0.1f}, .zero_point = {10}};
  Random random(3);
  integer::Program program;
  const auto value = [&](const Shape& shape) {
    program.values.push_back({.name = {}, .shape = shape, .params = params});
    return static_cast<int>(program.values.size()) - 1;
  };
  int last = value({49, 10, 1});
  program.inputs = {last};
  const auto step = [&](integer::Operation op, const Shape& shape) {
    const int output = value(shape);
    program.steps.push_back({std::move(op), {last}, output});
    last = output;
  };
  const auto conv = [&](const kernels::Conv2dShape& s) {
    step(integer::QuantizedConv2d{s, random_product(s.o, s.reduction(), random)},
         {s.oh(), s.ow(), s.o});
  };
  conv({.h = 49,
        .w = 10,
        .c = 1,
        .o = 64,
        .kh = 10,
        .kw = 4,
        .stride_h = 2,
        .stride_w = 2,
        .pad_h = 5,
        .pad_w = 1});
  const kernels::Conv2dShape image{.h = 25, .w = 5, .c = 64, .o = 64};
  for (int block = 0; block < 4; ++block) {
    kernels::Conv2dShape depthwise = image, pointwise = image;
    depthwise.kh = depthwise.kw = 3;
    depthwise.pad_h = depthwise.pad_w = 1;
    depthwise.groups = 64;
    conv(depthwise);
    conv(pointwise);
  }
  kernels::Conv2dShape pool = image;
  pool.kh = 25;
  pool.kw = 5;
  pool.groups = 64;
  step(integer::QuantizedAvgPool2d::make(pool, params, params, Activation::kNone), {1, 1, 64});
  step(integer::View{64}, {64});
  step(
      integer::QuantizedLinear{
          .rows = 1, .inputs = 64, .outputs = 12, .product = random_product(12, 64, random)},
      {12});
  program.outputs = {last};
  return program;
}

}  // namespace

TEST_CASE("exported random networks give the engine's integers", "[quant][c99][serial]") {
  const char* const compilers[] = {
      "gcc -O0 -DCORE_PLAIN=1 ",
      "gcc -O3 ",
      "gcc -O2 -mavx2 ",
      "gcc -O1 -fsanitize=address,undefined -fno-sanitize-recover=all "};
  for (uint64_t seed = 0; seed < (quantrain::test::kSanitized ? 4 : 12); ++seed) {
    RandomNetwork network = random_network(seed);
    INFO("seed " << seed << ": " << network.description);
    const IntegerModel model = train_and_convert(network, seed);
    const C99Options options{.name = "net", .pack_weights = seed % 3 != 0};
    CHECK(build_and_run(model.program(), options, compilers[seed % 4]) == "");
  }
}

TEST_CASE("an exported network also compiles as C++, and two networks link together",
          "[quant][c99]") {
  RandomNetwork network = random_network(3);
  const IntegerModel model = train_and_convert(network, 3);
  const TemporaryFolder folder;
  for (const char* const name : {"first", "second"}) {
    const C99Options options{.name = name, .section = ".rodata.tables"};
    write_c99(folder.path(), export_c99(model.program(), options));
  }
  if (has_no_compiler()) return;
  std::ofstream(folder / "main.cpp")
      << "#include \"first.h\"\n#include \"second.h\"\n"
         "static int32_t scratch[FIRST_SCRATCH_SIZE / 4 + SECOND_SCRATCH_SIZE / 4];\n"
         "int main() {\n  auto* const volatile one = &first_run;\n"
         "  auto* const volatile other = &second_run;\n"
         "  return scratch[0] + (one == nullptr) + (other == nullptr);\n}\n";
  const std::string in = "cd " + folder.path() + " && ";
  const std::string flags = " -Wall -Wextra -Werror ";
  CHECK(std::system((in + "gcc -std=c99 -c" + flags + "first.c second.c && g++" + flags +
                     "-o both main.cpp first.o second.o && ./both")
                        .c_str()) == 0);
  // The C file also compiles as C++.
  CHECK(std::system((in + "g++ -x c++ -c" + flags + "-o first_as_cpp.o first.c").c_str()) == 0);
}

TEST_CASE("the example in an exported header compiles and runs", "[quant][c99]") {
  const TemporaryFolder folder;
  write_c99(folder.path(), export_c99(ds_cnn(), {.name = "shown"}));
  const std::string header = contents(folder / "shown.h");
  const size_t begin = header.find("#include \"shown.h\"");
  const size_t end = header.find("\n\n   Outputs are", begin);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  if (has_no_compiler()) return;
  std::ofstream(folder / "main.c") << header.substr(begin, end - begin) << '\n';
  // The program returns whether its first output is positive.
  const int status = std::system(("cd " + folder.path() + " && gcc " + kWarnings +
                                  "-o shown main.c shown.c && { ./shown; test $? -le 1; }")
                                     .c_str());
  CHECK(status == 0);
}

TEST_CASE("names that are invalid in C are refused", "[quant][c99]") {
  RandomNetwork network = random_network(3);
  const integer::Program program = train_and_convert(network, 3).program();
  const auto refusal = [&](const C99Options& options) {
    try {
      (void)export_c99(program, options);
    } catch (const ExportError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(refusal({.name = "9lives"}) ==
        "[c99] the name \"9lives\" is no C identifier: use letters, digits and underscores, and "
        "begin with a letter");
  CHECK(refusal({.name = ""}).find("is no C identifier") != std::string::npos);
  CHECK(refusal({.name = "a-b"}).find("is no C identifier") != std::string::npos);
  CHECK(refusal({.name = "_x"}).find("is no C identifier") != std::string::npos);
  CHECK(refusal({.name = "a\n#error"}).find("is no C identifier") != std::string::npos);
  CHECK(refusal({.name = std::string(49, 'a')}) ==
        "[c99] the name has 49 characters: use at most 48");
  CHECK(refusal({.name = "string"}) ==
        "[c99] the name \"string\" would hide the header <string.h>: choose another");
  CHECK(refusal({.name = "Features"}) ==
        "[c99] the name \"Features\" would hide the header <features.h>: choose another");
  CHECK(refusal({.name = "test"}).find("names of the generated test") != std::string::npos);
  CHECK(refusal({.section = "\")))"}).find("is no section's name") != std::string::npos);
}

TEST_CASE("a step with more inputs than C99 has parameters is refused", "[quant][c99]") {
  const QParams params{.type = {}, .scale = {0.1f}, .zero_point = {10}};
  for (const size_t operands : {126u, 127u}) {
    integer::Program program;
    program.values = {{.name = "x", .shape = {4}, .params = params},
                      {.name = "sum", .shape = {4}, .params = params}};
    program.inputs = {0};
    program.outputs = {1};
    program.steps.push_back(
        {integer::QuantizedAdd::make(
             4, std::vector<QParams>(operands, params), params, Activation::kNone),
         std::vector<int>(operands, 0),
         1});
    if (operands == 126) {
      CHECK(build_and_run(program, {.name = "sums"}, "gcc -O0 ") == "");
    } else {
      QUANTRAIN_CHECK_ERROR(export_c99(program),
                            ExportError,
                            "[c99] sum has 127 inputs: a function of C99 takes at most 126");
    }
  }
}

TEST_CASE("if one exported file cannot be written, none is", "[quant][c99]") {
  RandomNetwork network = random_network(3);
  const C99Sources sources = export_c99(train_and_convert(network, 3).program(), {.name = "net"});
  CHECK_THROWS_AS(write_c99("/proc/no/such/folder", sources), DataError);
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "net_test.c");  // a folder, not a file
  CHECK_THROWS_AS(write_c99(folder.path(), sources, "int main(void) { return 0; }\n"), DataError);
  CHECK(folder.files() == 1);
}

TEST_CASE("samples for the generated test must be whole", "[quant][c99]") {
  RandomNetwork network = random_network(3);
  const integer::Program program = train_and_convert(network, 3).program();
  std::vector<uint8_t> samples = random_samples(program, 2, 1);
  samples.pop_back();
  CHECK_THROWS_AS(c99_test(program, samples), ShapeError);
  CHECK_THROWS_AS(c99_test(program, {}), ShapeError);
}

TEST_CASE("the generated test detects a wrong table", "[quant][c99]") {
  RandomNetwork network = random_network(3);
  const integer::Program program = train_and_convert(network, 3).program();
  const TemporaryFolder folder;
  C99Sources sources = export_c99(program, {.name = "net"});
  const std::string test = c99_test(program, random_samples(program, 3, 1), {.name = "net"});
  // The first sum of the first product starts 1,000,000 too high.
  const size_t at = sources.source.find("static const int32_t start_");
  REQUIRE(at != std::string::npos);
  const size_t brace = sources.source.find('{', at);
  sources.source.insert(brace + 1, " 1000000 +");
  write_c99(folder.path(), sources, test);
  if (has_no_compiler()) return;
  const std::string in = "cd " + folder.path() + " && ";
  CHECK(std::system((in + "gcc -o net net_test.c && ./net > log").c_str()) != 0);
  CHECK(contents(folder / "log").find(" differs") != std::string::npos);
}

TEST_CASE("the generated test measures each head of a network", "[quant][c99]") {
  const QParams params{.type = {}, .scale = {0.1f}, .zero_point = {10}};
  Random random(4);
  integer::QuantizedProduct sums = random_product(3, 8, random);
  sums.output.reset();
  integer::Program program;
  program.values = {{.name = {}, .shape = {8}, .params = params},
                    {.name = {}, .shape = {8}, .params = params},
                    {.name = {}, .shape = {3}, .params = {}, .scale = {0.1}},
                    {.name = {}, .shape = {3}, .params = {}, .scale = {0.1}}};
  program.inputs = {0};
  program.outputs = {2, 3};
  program.steps = {{integer::QuantizedLinear{1, 8, 8, random_product(8, 8, random)}, {0}, 1},
                   {integer::QuantizedLinear{1, 8, 3, sums}, {1}, 2},
                   {integer::QuantizedLinear{1, 8, 3, sums}, {1}, 3}};
  const TemporaryFolder folder;
  write_c99(folder.path(),
            export_c99(program, {.name = "heads"}),
            c99_test(program, random_samples(program, 2, 1), {.name = "heads"}));
  if (has_no_compiler()) return;
  std::ofstream(folder / "main.c") << R"(#include <stdio.h>
static int ended[8], samples;
static void end(int step) { ++ended[step]; }
#define MEASURE_START() ++samples
#define MEASURE_PAUSE(step) end((int)((step) - test_steps))
#define MEASURE_RESUME() (void)0
#define MEASURE_STOP(step) end((int)((step) - test_steps))
#define main run_test
)"
                                      "#include \"heads_test.c\"\n"
                                      R"(#undef main
int main(void) {
  const int status = run_test();
  return status || samples != 2 || ended[0] != 2 || ended[1] != 2 || ended[2] != 4;
}
)";
  const std::string run =
      "cd " + folder.path() + " && gcc " + kWarnings + "-o heads main.c && ./heads > log";
  CHECK(std::system(run.c_str()) == 0);
}

TEST_CASE("ram_bytes is the size of the exported network's scratch", "[quant][c99]") {
  RandomNetwork network = random_network(5);
  const integer::Program program = train_and_convert(network, 5).program();
  CHECK(ram_bytes(program) == export_c99(program).scratch_bytes);
}

TEST_CASE("a layer overwrites its input if its output has the same size", "[quant][c99][serial]") {
  // Each convolution's output takes 8,000 bytes, so separate memory for the input and the output of
  // a convolution would take 16,000.
  const integer::Program program = ds_cnn();
  CHECK(ram_bytes(program) <= 9 * 1024);
  CHECK(build_and_run(program, {.name = "keywords"}, "gcc -O2 -fsanitize=address,undefined ") ==
        "");
}

TEST_CASE("accumulators that nothing reads have their own memory", "[quant][c99]") {
  const QParams params{.type = {}, .scale = {0.1f}, .zero_point = {10}};
  Random random(4);
  integer::QuantizedProduct unread = random_product(10, 8, random);
  unread.output.reset();
  integer::Program program;
  program.values = {{.name = {}, .shape = {8}, .params = params},
                    {.name = {}, .shape = {10}, .params = {}, .scale = {0.1}},
                    {.name = {}, .shape = {6}, .params = params},
                    {.name = {}, .shape = {3}, .params = params}};
  program.inputs = {0};
  program.outputs = {3};
  program.steps = {
      {integer::QuantizedLinear{1, 8, 6, random_product(6, 8, random)}, {0}, 2},
      {integer::QuantizedLinear{1, 8, 10, unread}, {0}, 1},
      {integer::QuantizedLinear{1, 6, 3, random_product(3, 6, random)}, {2}, 3},
  };
  CHECK(ram_bytes(program) >= 46);
  CHECK(build_and_run(program,
                      {.name = "unread"},
                      "gcc -O1 -fsanitize=address,undefined -fno-sanitize-recover=all ") == "");
}

TEST_CASE("a network of one layer has neither steps to trace nor scratch", "[quant][c99]") {
  const QParams params{.type = {}, .scale = {0.1f}, .zero_point = {10}};
  Random random(4);
  integer::QuantizedProduct sums = random_product(3, 8, random);
  sums.output.reset();
  integer::Program program;
  program.values = {{.name = {}, .shape = {8}, .params = params},
                    {.name = {}, .shape = {3}, .params = {}, .scale = {0.1}}};
  program.inputs = {0};
  program.outputs = {1};
  program.steps = {{integer::QuantizedLinear{1, 8, 3, sums}, {0}, 1}};
  CHECK(ram_bytes(program) == 0);
  CHECK(build_and_run(program, {.name = "one"}, "gcc -O1 ") == "");
}

TEST_CASE("an input that no step reads gives no warning", "[quant][c99]") {
  const QParams params{.type = {}, .scale = {0.1f}, .zero_point = {10}};
  Random random(4);
  integer::Program program;
  program.values = {{.name = "unread", .shape = {8}, .params = params},
                    {.name = "read", .shape = {8}, .params = params},
                    {.name = "y", .shape = {3}, .params = params}};
  program.inputs = {0, 1};
  program.outputs = {2};
  program.steps = {{integer::QuantizedLinear{1, 8, 3, random_product(3, 8, random)}, {1}, 2}};
  CHECK(build_and_run(program, {.name = "two"}, "gcc -O1 ") == "");
}

TEST_CASE("many values that live at the same time are placed quickly", "[quant][c99]") {
  const QParams params{.type = {}, .scale = {0.1f}, .zero_point = {10}};
  integer::Program program;
  program.values = {{.name = "x", .shape = {4}, .params = params}};
  program.inputs = {0};
  integer::QuantizedLookup lookup{.size = 4};
  for (size_t q = 0; q < 256; ++q) lookup.table[q] = static_cast<uint8_t>(q);
  const auto add = [&](const integer::Operation& operation, std::vector<int> inputs) {
    program.values.push_back({.name = "", .shape = {4}, .params = params});
    const auto id = static_cast<int>(program.values.size()) - 1;
    program.steps.push_back({operation, std::move(inputs), id});
    return id;
  };
  const auto sum = [&](const std::vector<int>& terms) {
    const auto operation = integer::QuantizedAdd::make(
        4, std::vector<QParams>(terms.size(), params), params, Activation::kNone);
    return add(operation, terms);
  };
  std::vector<int> lookups, sums;
  for (int i = 0; i < 1200; ++i) lookups.push_back(add(lookup, {0}));
  for (size_t i = 0; i < lookups.size(); i += 100)
    sums.push_back(sum({lookups.begin() + static_cast<std::ptrdiff_t>(i),
                        lookups.begin() + static_cast<std::ptrdiff_t>(i) + 100}));
  program.outputs = {sum(sums)};
  const auto begin = std::chrono::steady_clock::now();
  CHECK(ram_bytes(program) >= 4800);
  if (!quantrain::test::kSanitized)
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  // A refusal comes before this work.
  program.steps.push_back({integer::QuantizedAdd::make(
                               4, std::vector<QParams>(1200, params), params, Activation::kNone),
                           lookups,
                           static_cast<int>(program.values.size())});
  program.values.push_back({.name = "all", .shape = {4}, .params = params});
  program.outputs = {static_cast<int>(program.values.size()) - 1};
  QUANTRAIN_CHECK_ERROR(export_c99(program), ExportError, "[c99] all has 1200 inputs");
}

}  // namespace quantrain::quant::test