#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <limits>

#include "layers/layers.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/export/c99_build.hpp"
#include "tests/quant/networks.hpp"
#include "tests/sanitized.hpp"

// The C forms of operations, in addition to the tests on random networks.
namespace quantrain::quant::test {

TEST_CASE("networks for signals and dilated convolutions have a C form", "[quant][c99][serial]") {
  const std::vector<std::string> compilers =
      c_compilers({"gcc -O0 -DCORE_PLAIN=1 ",
                   "gcc -O2 -mavx2 ",
                   "gcc -O1 -fsanitize=address,undefined -fno-sanitize-recover=all "});
  for (const int bits : {8, 3, 2}) {
    Sequential net = signal_net();
    const Tensor example = random_images({2, 40, 3}, 1);
    prepare_qat(net, example, QConfig::bits(bits, 8));
    train_a_little(net, {6, 40, 3}, 2);
    const integer::Program program = convert(net, example).program();
    for (const std::string& compiler : compilers)
      CHECK(build_and_run(program, {.name = "signals"}, compiler) == "");
  }
  // Dilated convolutions: with one group, with two groups, and depthwise. With padding, some
  // windows reach outside of the image.
  Random random(8);
  const QParams params{.type = {}, .scale = {0.1f}, .zero_point = {10}};
  for (const int64_t groups : {1, 2, 6}) {
    for (const int64_t pad : {0, 3}) {
      for (const int64_t stride : {1, 2}) {
        // With sanitizers, a part of the cases is enough (see c_compilers).
        if (quantrain::test::kSanitized && (pad == 0) != (stride == 1)) continue;
        kernels::Conv2dShape s{.h = 11, .w = 9, .c = 6, .o = 6, .kh = 3, .kw = 2};
        s.groups = groups;
        s.pad_h = s.pad_w = pad;
        s.stride_h = s.stride_w = stride;
        s.dilation_h = 1 + random.below(4);
        s.dilation_w = 2 + random.below(4);
        kernels::Conv2dShape pointwise{.h = s.oh(), .w = s.ow(), .c = 6, .o = 6};
        integer::Program program;
        for (const Shape& shape :
             {Shape{11, 9, 6}, Shape{s.oh(), s.ow(), 6}, Shape{s.oh(), s.ow(), 6}})
          program.values.push_back({.name = {}, .shape = shape, .params = params});
        program.inputs = {0};
        program.outputs = {2};
        program.steps = {
            {integer::QuantizedConv2d{s, random_product(6, s.reduction(), random)}, {0}, 1},
            {integer::QuantizedConv2d{pointwise, random_product(6, 6, random)}, {1}, 2}};
        integer::validate(program);
        CHECK(build_and_run(program,
                            {.name = "dilated"},
                            "gcc -O1 -fsanitize=address,undefined -fno-sanitize-recover=all ") ==
              "");
        // The same after a lookup: the first convolution now reads scratch memory, and writes its
        // output over its input.
        program.values.insert(program.values.begin(), program.values[0]);
        program.steps.insert(
            program.steps.begin(),
            {integer::QuantizedLookup::rescale(11 * 9 * 6, params, params, Activation::kRelu),
             {0},
             1});
        program.outputs = {3};
        for (size_t i = 1; i < program.steps.size(); ++i) {
          program.steps[i].inputs[0] = static_cast<int>(i);
          program.steps[i].output = static_cast<int>(i) + 1;
        }
        integer::validate(program);
        CHECK(build_and_run(program, {.name = "over"}, "gcc -O2 ") == "");
      }
    }
  }
}

namespace {

/// Whether this CPU has AVX-VNNI: dot products of bytes without AVX-512.
bool has_avx_vnni() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & 1u << 4) != 0;
#else
  return false;
#endif
}

}  // namespace

TEST_CASE("in a layer with biases near 2^31, weights are packed only if no accumulator overflows",
          "[quant][c99]") {
  // An accumulator starts at a value that contains the bias. The C core then subtracts
  // offset * (sum of the codes), where packing adds the offset to each weight. If the bias is too
  // close to 2^31 or -2^31, the difference may not fit in 32 bits. Converted networks have smaller
  // biases, but a file may hold larger ones.
  const QParams params{.type = {}, .scale = {0.1f}, .zero_point = {0}};
  constexpr int64_t kLength = 32, kOutputs = 16;
  // The largest bias with which weights are packed: 2^31 - 1, minus twice the product of the
  // largest sum of codes and the offset 8.
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() - 2 * 255 * 8 * kLength;
  const std::pair<int64_t, bool> cases[] = {
      {-kMost, true},
      {kMost, true},
      {-kMost - 1, false},
      {kMost + 1, false},
      {255 - int64_t{std::numeric_limits<int32_t>::max()}, false}};
  for (const auto& [bias, packed] : cases) {
    integer::QuantizedProduct product;
    std::vector<int8_t> weights(kLength * kOutputs);
    for (int64_t o = 0; o < kOutputs; ++o) weights[static_cast<size_t>(o * kLength)] = 1;
    product.weight = {std::move(weights), 4};
    product.bias = SharedArray<int32_t>(std::vector<int32_t>(kOutputs, static_cast<int32_t>(bias)));
    integer::Program program;
    program.values = {{.name = {}, .shape = {kLength}, .params = params},
                      {.name = {}, .shape = {kOutputs}, .params = {}, .scale = {0.1}}};
    program.inputs = {0};
    program.outputs = {1};
    program.steps = {{integer::QuantizedLinear{1, kLength, kOutputs, product}, {0}, 1}};
    integer::validate(program);
    CHECK((export_c99(program).source.find("_4bit(") != std::string::npos) == packed);
    CHECK(build_and_run(program,
                        {.name = "extreme"},
                        "gcc -O1 -fsanitize=address,undefined -fno-sanitize-recover=all ") == "");
  }
}

TEST_CASE("layers with sixteen outputs or more have a C form", "[quant][c99][serial]") {
  // With AVX2, sixteen outputs are computed together. 28 outputs are seven groups of four, so the
  // second block of sixteen overlaps the first. 23 outputs are five groups and three more outputs.
  std::vector<std::string> compilers = {
      "gcc -O2 -mavx2 ", "gcc -O1 -mavx2 -fsanitize=address,undefined -fno-sanitize-recover=all "};
  const bool clang = std::system("clang --version >/dev/null 2>&1") == 0;
  if (clang) compilers.push_back("clang -O2 -mavx2 ");
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512vnni") != 0 && __builtin_cpu_supports("avx512vl") != 0) {
    compilers.push_back("gcc -O2 -mavx2 -mavx512vl -mavx512vnni ");
    if (clang) compilers.push_back("clang -O2 -mavx2 -mavx512vl -mavx512vnni ");
  }
  if (has_avx_vnni()) compilers.push_back("gcc -O2 -mavxvnni ");
  Random random(9);
  const QParams params{.type = {}, .scale = {0.1f}, .zero_point = {10}};
  for (const int bits : {8, 4, 2, 1}) {
    // With sanitizers, a part of the cases is enough (see c_compilers).
    if (quantrain::test::kSanitized && bits != 4) continue;
    integer::Program program;
    program.values.push_back({.name = {}, .shape = {3, 3, 20}, .params = params});
    program.values.push_back({.name = {}, .shape = {180}, .params = params});
    program.inputs = {0};
    program.steps = {{integer::View{180}, {0}, 1}};
    const auto product = [&](int64_t outputs, int64_t length, bool codes) {
      integer::QuantizedProduct p = random_product(outputs, length, random);
      const int most = bits == 1 ? 1 : (1 << (bits - 1)) - 1;
      std::vector<int8_t> weights = p.weight.values();
      for (int8_t& w : weights)
        w = static_cast<int8_t>(bits == 1 ? (w < 0 ? -1 : 1) : w % (most + 1));
      // The weights of the first output all have the largest value, so its sums and packed fields
      // are the largest, too. The weights of the second output are all the negative of it.
      for (int64_t i = 0; i < 2 * length; ++i)
        weights[static_cast<size_t>(i)] = static_cast<int8_t>(i < length ? most : -most);
      p.weight = {std::move(weights), bits};
      if (!codes) p.output.reset();
      if (codes && outputs == 16) p.output->y = {10, 140, 230};
      if (!codes) return p;
      std::vector<int32_t> m0 = p.output->m0.values();
      std::vector<int32_t> shift = p.output->shift.values();
      for (size_t o = 0; o < m0.size(); ++o) {
        m0[o] += static_cast<int32_t>(random.below(1 << 30));
        // If there are 64 outputs, some of their shifts need 64-bit arithmetic.
        const int64_t least = outputs == 64 ? 28 : 34, most_shift = outputs == 64 ? 62 : 44;
        shift[o] = static_cast<int32_t>(least + random.below(most_shift - least + 1));
      }
      p.output->m0 = std::move(m0);
      p.output->shift = std::move(shift);
      return p;
    };
    for (const int64_t outputs : {16, 23, 28, 64}) {
      for (const bool codes : {true, false}) {
        if (!codes && outputs != 28) continue;
        for (const int64_t kernel : {0, 1, 3}) {  // 0: linear
          const kernels::Conv2dShape s{.h = 3,
                                       .w = 3,
                                       .c = 20,
                                       .o = outputs,
                                       .kh = kernel,
                                       .kw = kernel,
                                       .pad_h = kernel / 2,
                                       .pad_w = kernel / 2};
          const int value = static_cast<int>(program.values.size());
          if (kernel == 0) {
            program.steps.push_back(
                {integer::QuantizedLinear{.rows = 1,
                                          .inputs = 180,
                                          .outputs = outputs,
                                          .product = product(outputs, 180, codes)},
                 {1},
                 value});
          } else {
            program.steps.push_back(
                {integer::QuantizedConv2d{s, product(outputs, s.reduction(), codes)}, {0}, value});
          }
          integer::Value y{.name = {},
                           .shape = kernel == 0 ? Shape{outputs} : Shape{3, 3, outputs}};
          if (codes) y.params = params;
          if (!codes) y.scale = {0.1};
          program.values.push_back(std::move(y));
          program.outputs.push_back(value);
        }
      }
    }
    integer::validate(program);
    for (const std::string& compiler : c_compilers(compilers)) {
      INFO(bits << " bits, " << compiler);
      CHECK(build_and_run(program, {.name = "wide"}, compiler) == "");
    }
  }
}

TEST_CASE("a lookup with a table for each channel has a C form", "[quant][c99][serial]") {
  const QParams params{.type = {}, .scale = {0.1f}, .zero_point = {10}};
  Random random(6);
  integer::Program program;
  for (const Shape& shape : {Shape{5, 4, 3}, Shape{5, 4, 3}, Shape{7, 6, 3}, Shape{7, 6, 3}})
    program.values.push_back({.name = {}, .shape = shape, .params = params});
  const auto lookup = [&](int64_t size) {
    integer::QuantizedLookup op{.size = size, .table = {}};
    for (int i = 0; i < 3 * 256; ++i) op.table.push_back(static_cast<uint8_t>(random.below(256)));
    return op;
  };
  // Between the tables is a convolution whose output is larger than its input.
  const kernels::Conv2dShape s{
      .h = 5, .w = 4, .c = 3, .o = 3, .kh = 3, .kw = 3, .pad_h = 2, .pad_w = 2};
  program.inputs = {0};
  program.outputs = {3};
  program.steps = {{lookup(60), {0}, 1},
                   {integer::QuantizedConv2d{s, random_product(3, 27, random)}, {1}, 2},
                   {lookup(126), {2}, 3}};
  for (const std::string& compiler :
       c_compilers({"gcc -O0 ", "gcc -O2 -fsanitize=address,undefined "}))
    CHECK(build_and_run(program, {.name = "tables"}, compiler) == "");
}

TEST_CASE("paddings that differ by side and means of codes have a C form", "[quant][c99][serial]") {
  const QParams params{
      .type = {.bits = 8, .is_signed = true}, .scale = {0.1f}, .zero_point = {-100}};
  Random random(9);
  for (const auto& [pad, end] : {std::pair<int64_t, int64_t>{0, 1}, {2, -2}, {0, 2}}) {
    for (const int64_t stride : {1, 2}) {
      integer::Program program;
      program.values.push_back({.name = {}, .shape = {6, 8, 4}, .params = params});
      program.inputs = {0};
      for (const int64_t groups : {1, 4, 2, 0}) {  // the last one is a pool
        const Shape x = program.values.back().shape;
        kernels::Conv2dShape s{.h = x[0], .w = x[1], .c = 4, .o = 4, .kh = 2, .kw = 2};
        s.groups = groups > 0 ? groups : 4;
        s.stride_w = groups == 1 ? stride : 1;
        s.pad_h = groups > 0 ? pad : 0;
        s.end_h = groups > 0 ? end : 1;
        s.end_w = groups == 2 ? end : 0;
        s.pad_w = groups == 2 ? pad : 0;
        const int from = static_cast<int>(program.values.size()) - 1;
        program.values.push_back({.name = {}, .shape = {s.oh(), s.ow(), 4}, .params = params});
        if (groups == 0) {
          const auto mean =
              integer::QuantizedAvgPool2d::make_mean_of_codes(s, params, Activation::kNone);
          program.steps.push_back({mean, {from}, from + 1});
          continue;
        }
        integer::QuantizedProduct product = random_product(4, s.reduction(), random);
        product.zero_x = product.output->y.zero_point = stored_zero_point(params);
        program.steps.push_back({integer::QuantizedConv2d{s, product}, {from}, from + 1});
      }
      program.outputs = {static_cast<int>(program.values.size()) - 1};
      integer::validate(program);
      CHECK(build_and_run(program,
                          {.name = "uneven"},
                          "gcc -O1 -fsanitize=address,undefined -fno-sanitize-recover=all ") == "");
    }
  }
}

TEST_CASE("moves of codes have a C form", "[quant][c99][serial]") {
  const QParams params{.type = {}, .scale = {0.1f}, .zero_point = {10}};
  const Shape x{5, 6, 3};
  // Slices, reversal, padding, upsampling, and all of these at once; then lists in random order,
  // with and without a fill, along outer and inner axes.
  const std::vector<std::vector<std::vector<int32_t>>> all = {
      {{1, 2, 3}, {}, {}},
      {{}, {5, 3, 1}, {}},
      {{}, {}, {2, 1, 0}},
      {{-1, 0, 1, 2, 3, 4, -1, -1}, {-1, -1, 0, 1, 2, 3, 4, 5}, {}},
      {{0, 0, 1, 1, 2, 2}, {1, 1, 1, 2, 2, 2}, {}},
      {{-1, 4, 4, 0, 0, -1}, {-1, 3, 3}, {-1, 0, 2}},
      {{3, 1, 4, 1, 0}, {}, {}},
      {{3, -1, 4, 1, 0}, {5, -1, 0, 1}, {2, -1, 2, 0}},
      {{2}, {3, 2, 4}, {1}}};
  integer::Program program;
  program.values.push_back({.name = {}, .shape = x, .params = params});
  program.inputs = {0};
  for (const auto& index : all) {
    const auto op = integer::Gather::make(x, index, 10);
    const auto output = static_cast<int>(program.values.size());
    program.values.push_back({.name = {}, .shape = {op.output_size()}, .params = params});
    program.steps.push_back({op, {0}, output});
    program.outputs.push_back(output);
  }
  // An axis whose indices do not fit in int16_t.
  std::vector<int32_t> scattered{39999, 3, -1, 17};
  const auto wide = integer::Gather::make({40000}, {scattered}, 10);
  program.values.push_back({.name = {}, .shape = {40000}, .params = params});
  program.inputs.push_back(static_cast<int>(program.values.size()) - 1);
  program.values.push_back({.name = {}, .shape = {4}, .params = params});
  program.steps.push_back({wide, {program.inputs[1]}, program.inputs[1] + 1});
  program.outputs.push_back(program.inputs[1] + 1);
  // Only lists in random order need a table.
  CHECK(export_c99(program).table_bytes == 2 * 5 + 2 * (5 + 4 + 4) + 2 * 3 + 4 * 4);
  for (const std::string& compiler :
       c_compilers({"gcc -O0 ", "gcc -O2 -fsanitize=address,undefined "}))
    CHECK(build_and_run(program, {.name = "moves"}, compiler, 2) == "");
}

TEST_CASE("products of two tensors have a C form that overwrites the larger operand",
          "[quant][c99][serial]") {
  const QParams params{.type = {}, .scale = {0.1f}, .zero_point = {10}};
  const auto rescale = [&](int64_t size) {
    return integer::QuantizedLookup::rescale(size, params, params, Activation::kRelu);
  };
  const auto factors =
      integer::QuantizedMul::make(20, 3, params, params, params, Activation::kNone);
  const auto same = integer::QuantizedMul::make(1, 60, params, params, params, Activation::kRelu);
  integer::Program chain;
  for (const Shape& shape :
       {Shape{5, 4, 3}, Shape{3}, Shape{5, 4, 3}, Shape{3}, Shape{60}, Shape{60}, Shape{60}})
    chain.values.push_back({.name = {}, .shape = shape, .params = params});
  chain.inputs = {0, 1};
  chain.outputs = {6};
  chain.steps = {{rescale(60), {0}, 2},
                 {rescale(3), {1}, 3},
                 {factors, {2, 3}, 4},
                 {same, {4, 4}, 5},
                 {rescale(60), {5}, 6}};
  CHECK(ram_bytes(chain) == 64);
  // A later step reads the larger operand again, so the product is not written over this operand.
  // The product is not written over the smaller operand either, because each row reads all of it.
  integer::Program residual = chain;
  residual.steps[3] = {same, {2, 4}, 5};
  residual.steps[4] = {same, {5, 2}, 6};
  CHECK(ram_bytes(residual) == 124);
  for (integer::Program* program : {&chain, &residual}) {
    for (const Multiplier& multiplier : {factors.multiplier,
                                         Multiplier{2147483647, 1},
                                         Multiplier{1 << 30, 62},
                                         Multiplier{0, 1}}) {
      std::get<integer::QuantizedMul>(program->steps[2].operation).multiplier = multiplier;
      for (const std::string& compiler :
           c_compilers({"gcc -O0 ", "gcc -O2 -fsanitize=address,undefined "}))
        CHECK(build_and_run(*program, {.name = "mul"}, compiler) == "");
    }
  }
}

TEST_CASE("sums of any number of tensors have a C form that overwrites an operand",
          "[quant][c99][serial]") {
  const QParams x{.type = {}, .scale = {0.1f}, .zero_point = {10}};
  const QParams y{.type = {.bits = 8, .is_signed = true}, .scale = {0.17f}, .zero_point = {-3}};
  const auto sum = [&](size_t operands, Activation activation) {
    return integer::QuantizedAdd::make(60, std::vector<QParams>(operands, x), y, activation);
  };
  const auto back = integer::QuantizedLookup::rescale(60, y, x, Activation::kNone);
  integer::Program program;
  for (int i = 0; i < 6; ++i)
    program.values.push_back({.name = {}, .shape = {60}, .params = i == 2 || i == 4 ? y : x});
  program.inputs = {0, 1};
  program.outputs = {5};
  program.steps = {{sum(3, Activation::kRelu), {0, 1, 0}, 2},
                   {back, {2}, 3},
                   {sum(8, Activation::kNone), {3, 0, 3, 1, 1, 0, 3, 3}, 4},
                   {back, {4}, 5}};
  // The sum of eight operands overwrites value 3, the only one of them in scratch memory.
  CHECK(ram_bytes(program) == 60);
  for (const std::pair<int32_t, int32_t>& numbers :
       {std::pair{0, 0}, {2147483647, 1}, {2147483647, 62}, {0, 1}}) {
    if (numbers.second != 0) {
      auto& op = std::get<integer::QuantizedAdd>(program.steps[2].operation);
      for (auto& operand : op.operands) operand.m = numbers.first;
      op.shift = numbers.second;
    }
    for (const std::string& compiler :
         c_compilers({"gcc -O0 ", "gcc -O2 -fsanitize=address,undefined "}))
      CHECK(build_and_run(program, {.name = "sums"}, compiler) == "");
  }
}

TEST_CASE("softmax has a C form", "[quant][c99]") {
  const QParams x{.type = {}, .scale = {0.03f}, .zero_point = {10}};
  const QParams y{.type = {.bits = 8, .is_signed = true}, .scale = {0.004f}, .zero_point = {-128}};
  integer::Program program;
  program.values.push_back({.name = {}, .shape = {4, 15}, .params = x});
  program.inputs = {0};
  for (const int64_t classes : {1, 15, 60}) {
    const auto op = integer::QuantizedSoftmax::make(60 / classes, classes, x, y, Activation::kNone);
    const auto output = static_cast<int>(program.values.size());
    program.values.push_back({.name = {}, .shape = {60}, .params = y});
    program.steps.push_back({op, {0}, output});
    program.outputs.push_back(output);
  }
  for (const std::string& compiler :
       c_compilers({"gcc -O0 ", "gcc -O2 -fsanitize=address,undefined "}))
    CHECK(build_and_run(program, {.name = "softmax"}, compiler) == "");
}

TEST_CASE("softmax has a C form for all multipliers and powers that a file may hold",
          "[quant][c99][serial]") {
  using integer::QuantizedSoftmax;
  const QParams params{.type = {}, .scale = {0.1f}, .zero_point = {10}};
  constexpr int32_t kOne = QuantizedSoftmax::kOne;
  std::vector<int32_t> only_first(QuantizedSoftmax::kPowers, 0);
  only_first[0] = kOne;
  const std::vector<int32_t> equal(QuantizedSoftmax::kPowers, kOne);
  std::vector<int32_t> in_no_order = equal;
  Random random(11);
  for (size_t d = 1; d < in_no_order.size(); ++d)
    in_no_order[d] = static_cast<int32_t>(random.below(int64_t{kOne} + 1));
  integer::Program program;
  program.values.push_back({.name = {}, .shape = {60}, .params = params});
  program.inputs = {0};
  for (const Multiplier& multiplier : {Multiplier{0, 1},
                                       Multiplier{2147483647, 1},
                                       Multiplier{1 << 30, 62},
                                       Multiplier{2147483647, 30},
                                       Multiplier{2147483647, 23}}) {
    for (const std::vector<int32_t>& powers : {only_first, equal, in_no_order}) {
      for (const int64_t classes : {1, 15, 60}) {
        const auto output = static_cast<int>(program.values.size());
        program.values.push_back({.name = {}, .shape = {60}, .params = params});
        program.steps.push_back({QuantizedSoftmax{.rows = 60 / classes,
                                                  .classes = classes,
                                                  .powers = powers,
                                                  .multiplier = multiplier,
                                                  .y = {10, 10, 250}},
                                 {0},
                                 output});
        program.outputs.push_back(output);
      }
    }
  }
  integer::validate(program);
  for (const std::string& compiler :
       c_compilers({"gcc -O0 ", "gcc -O2 -fsanitize=address,undefined -fno-sanitize-recover=all "}))
    CHECK(build_and_run(program, {.name = "softmax"}, compiler) == "");
}

TEST_CASE("a network that gives one number for each sample has a C form", "[quant][c99]") {
  const Tensor example = random_images({2, 6, 7, 1}, 1);
  Sequential net{Conv2d{1, 5, {.padding = 1}}, ReLU{}, Mean{{1, 2, 3}}};
  prepare_ptq(net, example, QConfig::int8());
  calibrate(net, {random_images({6, 6, 7, 1}, 2)});
  const integer::Program program = convert(net, example).program();
  CHECK(program.value(program.outputs[0]).shape == Shape{});
  // A scalar has no classes.
  CHECK(export_c99(program, {.name = "net"}).header.find("classify") == std::string::npos);
  CHECK(build_and_run(program, {.name = "net"}, "gcc -O1 ") == "");
}

TEST_CASE("C code gives the class of each pixel, also of outputs with several scales",
          "[quant][c99]") {
  const Tensor example = random_images({2, 6, 7, 1}, 1);
  Sequential net{Conv2d{1, 5, {.padding = 1}}, ReLU{}, Conv2d{5, 3}};
  prepare_qat(net, example, QConfig::bits(3, 8));
  calibrate(net, random_images({9, 6, 7, 1}, 2));
  const IntegerModel model = convert(net, example);
  const integer::Program& program = model.program();
  REQUIRE(program.value(program.outputs[0]).shape == Shape{4, 5, 3});
  REQUIRE(program.value(program.outputs[0]).scale.size() == 3);
  const C99Sources sources = export_c99(program, {.name = "net"});
  // A sample has 20 classes, so no function returns its class.
  CHECK(sources.header.find("net_classify") == std::string::npos);
  CHECK(build_and_run(program, {.name = "net"}, "gcc -O1 ") == "");

  // The program classifies the pixels of three samples, and returns the number of wrong classes.
  const std::vector<uint8_t> x = random_samples(program, 3, 4);
  std::vector<int32_t> classes(60);
  model.classify_codes(x, classes);
  CHECK(std::count(classes.begin(), classes.end(), classes[0]) < 60);
  const auto table = [](const auto& values) {
    std::string text;
    for (const auto value : values) text += std::to_string(value) + ",";
    return text;
  };
  if (has_no_compiler()) return;
  const quantrain::test::TemporaryFolder folder;
  write_c99(folder.path(), sources, "");
  std::ofstream(folder / "main.c")
      << "#include \"net.h\"\nstatic const uint8_t x[] = {" << table(x)
      << "};\nstatic const int32_t classes[] = {" << table(classes) << "};\n"
      << R"(static int32_t scratch[NET_SCRATCH_SIZE / 4 + 1];
            static net_output scores[NET_OUTPUT_SIZE];
            int main(void) {
              int i, n, wrong = 0;
              for (n = 0; n < 3; ++n) {
                net_run(x + n * NET_INPUT_SIZE, scores, scratch);
                for (i = 0; i < 20; ++i) wrong += net_class(scores + 3 * i) != classes[20 * n + i];
              }
              return wrong;
            })";
  const std::string command = std::string("gcc -O1 ") + kWarnings + (folder / "main.c") + " " +
                              (folder / "net.c") + " -o " + (folder / "main") + " && " +
                              (folder / "main");
  CHECK(std::system(command.c_str()) == 0);
}

TEST_CASE("a class function exists for each output with classes", "[quant][c99]") {
  const QParams params{.type = {}, .scale = {0.1f}, .zero_point = {10}};
  integer::Program program;
  for (const Shape& shape : {Shape{4}, Shape{4}, Shape{1}})
    program.values.push_back({.name = {}, .shape = shape, .params = params});
  Random random(1);
  program.inputs = {0};
  program.outputs = {1, 2};
  program.steps = {{integer::QuantizedLinear{1, 4, 4, random_product(4, 4, random)}, {0}, 1},
                   {integer::QuantizedLinear{1, 4, 1, random_product(1, 4, random)}, {0}, 2}};
  const std::string header = export_c99(program, {.name = "net"}).header;
  CHECK(header.find("int32_t net_class_0(const net_output_0 *row);") != std::string::npos);
  CHECK(header.find("net_class_1") == std::string::npos);  // a single number
  CHECK(header.find("net_classify") == std::string::npos);
}

}  // namespace quantrain::quant::test
