#include <array>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <variant>

#include "framework/core/error.hpp"
#include "framework/integer/operation.hpp"
#include "tests/catch.hpp"
#include "tests/framework/integer/sample_operations.hpp"

// The properties that operations report, and the operations that are refused.
namespace quantrain::integer {

using namespace quantrain::integer::test;

TEST_CASE("operations report their properties", "[integer][operation]") {
  const std::vector<Operation> all = samples();
  CHECK(all.size() == std::variant_size_v<Operation>);
  size_t position = 0;
  for_each_type([&](auto* null) {
    using Op = std::decay_t<decltype(*null)>;
    CHECK(Op::kType == type(all[position++]));
  });
  std::set<std::string_view> names;
  for (const Operation& op : all) {
    INFO(type(op));
    names.insert(type(op));
    CHECK_NOTHROW(validate(op, "op"));
    CHECK_FALSE(kernel(op).empty());
    CHECK_FALSE(gives_accumulators(op));
    CHECK((accumulator_bound(op) > 0) == (product(op) != nullptr));
    CHECK((multiply_adds(op) > 0) == (product(op) != nullptr));
    // With no samples, nothing is read or written.
    std::vector<uint8_t> memory(64, 7);
    const std::vector<const uint8_t*> inputs(input_sizes(op).size(), memory.data());
    PreparedOperation(op).run(0, inputs, memory.data());
    CHECK(memory == std::vector<uint8_t>(64, 7));
  }
  CHECK(names.size() == all.size());
  CHECK(kernel(linear()) == "gemm_u8s8_u8");
  CHECK(kernel(conv2d()) == "conv2d_u8s8_u8");
  CHECK(multiply_adds(conv2d()) == 5 * 4 * 4 * 9);
  CHECK(multiply_adds(linear()) == 6);
  QuantizedLinear sums = linear();
  sums.product.output.reset();
  CHECK(kernel(sums) == "gemm_u8s8_s32");
  CHECK(gives_accumulators(sums));
  QuantizedConv2d image_sums = conv2d();
  image_sums.product.output.reset();
  CHECK(kernel(image_sums) == "conv2d_u8s8_s32");

  CHECK(input_zero_point(add(), 0) == 7);
  CHECK(input_zero_point(add(), 1) == 125);
  CHECK(input_zero_point(concat(), 1) == 125);
  CHECK(input_zero_point(concat(), 2) == 5);
  CHECK(input_zero_point(linear(), 0) == 7);
  CHECK(input_zero_point(conv2d(), 0) == 7);
  CHECK(input_zero_point(avg_pool(), 0) == 7);
  CHECK(output_zero_point(add()) == 5);
  CHECK(output_zero_point(concat()) == 5);
  CHECK(output_zero_point(linear()) == 5);
  CHECK(output_zero_point(conv2d()) == 5);
  CHECK(output_zero_point(avg_pool()) == 5);
  CHECK(input_zero_point(softmax(), 0) == -1);
  CHECK(output_zero_point(softmax()) == 5);
  for (const Operation& op : {Operation(max_pool()), Operation(View{2}), Operation(lookup())}) {
    CHECK(input_zero_point(op, 0) == -1);
    CHECK(output_zero_point(op) == -1);
  }
}

TEST_CASE("operations refuse parameters that activations cannot have", "[integer][operation]") {
  const QParams wide{{.bits = 16}, -1, {1.0f}, {0}};
  const QParams per_channel{{.bits = 8}, 0, {1.0f, 1.0f}, {0, 0}};
  const QParams tiny{{.bits = 8}, -1, {1e-20f}, {0}};
  const QParams empty{{.bits = 8}, -1, {}, {}};
  const auto square = [](double v) { return v * v; };
  const auto none = Activation::kNone;
  const std::vector<std::function<void(const QParams&)>> makers = {
      [&](const QParams& y) {
        QuantizedAdd::make(4, {kX, kX}, y, none);
      },
      [&](const QParams& y) {
        QuantizedAvgPool2d::make(pool_shape(2, 2, 1, 2, 2, 0), kX, y, none);
      },
      [&](const QParams& y) { QuantizedConcat::make(1, {4}, {kX}, y, none); },
      [&](const QParams& y) { QuantizedLookup::rescale(4, kX, y, none); },
      [&](const QParams& y) { QuantizedMul::make(1, 4, kX, kX, y, none); },
      [&](const QParams& y) { QuantizedSoftmax::make(1, 4, kX, y, none); },
      [&](const QParams& y) { requantization({0.1}, y, none); },
  };
  for (const auto& make : makers) {
    CHECK_NOTHROW(make(kY));
    for (const QParams& y : {wide, per_channel}) {
      QUANTRAIN_CHECK_ERROR(
          make(y), QuantError, "[requantize] activations have one scale and at most 8 bits, got ");
    }
    QUANTRAIN_CHECK_ERROR(make(tiny), QuantError, "[requantize] multiplier");
    QUANTRAIN_CHECK_ERROR(make(empty), QuantError, "[requantize] ");
  }
  // Each operand's parameters are checked. `empty` has no scale.
  const std::string operand = "integer activations are per tensor and of 1 to 8 bits, got ";
  const CodeValues values = code_values(square, kX);
  const std::vector<std::pair<std::string, std::function<void(const QParams&)>>> takers = {
      {"[avg_pool2d] ",
       [&](const QParams& x) {
         QuantizedAvgPool2d::make(pool_shape(2, 2, 1, 2, 2, 0), x, kY, none);
       }},
      {"[concat] ",
       [&](const QParams& x) {
         QuantizedConcat::make(1, {4, 4}, {kX, x}, kY, none);
       }},
      {"[lookup] ", [&](const QParams& x) { QuantizedLookup::rescale(4, x, kY, none); }},
      {"[square] ",
       [&](const QParams& x) { QuantizedLookup::function(4, {values}, x, kY, none, "square"); }},
      {"[softmax] ", [&](const QParams& x) { QuantizedSoftmax::make(1, 4, x, kY, none); }},
  };
  for (const auto& [place, take] : takers) {
    CHECK_NOTHROW(take(kX));
    for (const QParams& x : {wide, per_channel})
      QUANTRAIN_CHECK_ERROR(take(x), QuantError, place + operand);
    QUANTRAIN_CHECK_ERROR(take(empty), QuantError, place);
  }
  QUANTRAIN_CHECK_ERROR(QuantizedConcat::make(1, {4, 4}, {kX}, kY, none),
                        ShapeError,
                        "[concat] 2 lengths for 1 operands");
  for (const QParams& x : {wide, per_channel}) {
    QUANTRAIN_CHECK_ERROR(QuantizedAdd::make(4, {x, kX}, kY, none), QuantError, "[add] " + operand);
    QUANTRAIN_CHECK_ERROR(QuantizedAdd::make(4, {kX, x}, kY, none), QuantError, "[add] " + operand);
    QUANTRAIN_CHECK_ERROR(
        QuantizedMul::make(1, 4, x, kX, kY, none), QuantError, "[mul] " + operand);
    QUANTRAIN_CHECK_ERROR(
        QuantizedMul::make(1, 4, kX, x, kY, none), QuantError, "[mul] " + operand);
  }
  for (const QParams& y : {wide, per_channel}) {
    QUANTRAIN_CHECK_ERROR(
        QuantizedLookup::function(4, {code_values(square, kX)}, kX, y, none, "square"),
        QuantError,
        "activations have one scale and at most 8 bits");
  }
}

namespace {

/// A change that makes an operation invalid, and the text of the error.
template <class Op>
struct Fault {
  std::function<void(Op&)> change;
  std::string text;
  bool is_shape = false;
};

template <class Op>
void check_faults(const std::function<Op()>& make, const std::vector<Fault<Op>>& faults) {
  CHECK_NOTHROW(validate(Operation(make()), "layer"));
  for (const Fault<Op>& fault : faults) {
    INFO(fault.text);
    Op op = make();
    fault.change(op);
    if (fault.is_shape) {
      QUANTRAIN_CHECK_ERROR(validate(Operation(op), "layer"), ShapeError, "[layer] " + fault.text);
    } else {
      QUANTRAIN_CHECK_ERROR(validate(Operation(op), "layer"), QuantError, "[layer] " + fault.text);
    }
  }
}

/// Faults of the output's clamp and zero point.
template <class Op>
std::vector<Fault<Op>> output_faults(const std::function<StoredOutput&(Op&)>& y) {
  return {{[=](Op& op) { y(op).zero_point = -1; }, "zero point -1 is not in [0, 255]"},
          {[=](Op& op) { y(op).zero_point = 256; }, "zero point 256 is not in [0, 255]"},
          {[=](Op& op) { y(op).lo = -1; }, "output codes are clamped to [-1, 15]"},
          {[=](Op& op) { y(op).hi = 256; }, "output codes are clamped to [0, 256]"},
          {[=](Op& op) { y(op).lo = 16; }, "output codes are clamped to [16, 15]"}};
}

template <class Op>
std::vector<Fault<Op>> joined(std::vector<Fault<Op>> a, const std::vector<Fault<Op>>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Faults of a window over an image of shape [5, 4, C].
template <class Op>
std::vector<Fault<Op>> window_faults() {
  using Shape = kernels::Conv2dShape;
  std::vector<Fault<Op>> faults;
  const std::pair<const char*, int64_t Shape::*> extents[] = {{"h", &Shape::h},
                                                              {"w", &Shape::w},
                                                              {"c", &Shape::c},
                                                              {"o", &Shape::o},
                                                              {"kh", &Shape::kh},
                                                              {"kw", &Shape::kw},
                                                              {"stride_h", &Shape::stride_h},
                                                              {"stride_w", &Shape::stride_w},
                                                              {"groups", &Shape::groups},
                                                              {"dilation_h", &Shape::dilation_h},
                                                              {"dilation_w", &Shape::dilation_w}};
  for (const auto& [name, extent] : extents) {
    for (const int64_t value : {int64_t{0}, int64_t{-1}, (int64_t{1} << 20) + 1}) {
      const std::string text = "extent " + std::to_string(value) + " is not in [1, 1048576]";
      faults.push_back({[=, e = extent](Op& op) { op.shape.*e = value; }, text, true});
    }
  }
  faults.push_back({[](Op& op) { op.shape.pad_h = -1; }, "padding [-1, 1]", true});
  faults.push_back({[](Op& op) { op.shape.pad_w = -1; }, "padding [1, -1]", true});
  faults.push_back(
      {[](Op& op) { op.shape.pad_h = (int64_t{1} << 20) + 1; }, "padding [1048577, 1]", true});
  faults.push_back(
      {[](Op& op) { op.shape.pad_w = (int64_t{1} << 20) + 1; }, "padding [1, 1048577]", true});
  // The padding at the end is pad + end, of which pad is 1.
  faults.push_back(
      {[](Op& op) { op.shape.end_h = 1 << 20; }, "padding [1048577, 1] is not in", true});
  faults.push_back(
      {[](Op& op) { op.shape.end_w = 1 << 20; }, "padding [1, 1048577] is not in", true});
  faults.push_back({[](Op& op) { op.shape.end_h = -2; }, "padding [-1, 1] is not in", true});
  faults.push_back({[](Op& op) { op.shape.end_w = -2; }, "padding [1, -1] is not in", true});
  const auto kernel = [](int64_t kh, int64_t kw) {
    return [=](Op& op) {
      op.shape.kh = kh;
      op.shape.kw = kw;
    };
  };
  faults.push_back({kernel(8, 2), "kernel [8, 2] exceeds the padded image [7, 6]", true});
  faults.push_back({kernel(2, 7), "kernel [2, 7] exceeds the padded image [7, 6]", true});
  faults.push_back(
      {[](Op& op) { op.shape.n = 2; }, "the shape must be of one sample, got 2", true});
  faults.push_back({[](Op& op) { op.shape.h = op.shape.w = 1 << 15; },
                    "a value has more than 1073741824 elements",
                    true});
  faults.push_back({[](Op& op) { op.shape.pad_h = op.shape.pad_w = 1 << 16; },
                    "a value has more than 1073741824 elements",
                    true});
  return faults;
}

}  // namespace

TEST_CASE("elementwise operations, views and concatenations refuse invalid members",
          "[integer][operation]") {
  const int64_t many = kMostElements + 1;
  const std::string more = "a value has more than 1073741824 elements";
  check_faults<View>([] { return View{3}; },
                     {{[](View& op) { op.size = 0; }, "extent 0 is not positive", true},
                      {[](View& op) { op.size = -3; }, "extent -3 is not positive", true},
                      {[=](View& op) { op.size = many; }, more, true}});
  check_faults<QuantizedLookup>(
      [] { return lookup(); },
      {{[](QuantizedLookup& op) { op.size = 0; }, "extent 0 is not positive", true},
       {[=](QuantizedLookup& op) { op.size = many; }, more, true},
       {[](QuantizedLookup& op) { op.table.clear(); }, "a table of 0 codes, expected 256", true},
       {[](QuantizedLookup& op) { op.table.pop_back(); }, "a table of 255 codes", true},
       {[](QuantizedLookup& op) { op.table.resize(512); },
        "tables of 2 channels do not fit samples of 7 codes",
        true}});
  check_faults<QuantizedAdd>(
      add,
      joined<QuantizedAdd>(
          {{[](QuantizedAdd& op) { op.size = 0; }, "extent 0 is not positive", true},
           {[](QuantizedAdd& op) { op.operands.clear(); },
            "an addition has 1 to 16384 operands, got 0",
            true},
           {[](QuantizedAdd& op) { op.operands.resize(16385); },
            "an addition has 1 to 16384 operands, got 16385",
            true},
           {[=](QuantizedAdd& op) { op.size = many; }, more, true},
           {[](QuantizedAdd& op) { op.operands[0].zero_x = 256; },
            "zero point 256 is not in [0, 255]"},
           {[](QuantizedAdd& op) { op.operands[1].zero_x = -1; },
            "zero point -1 is not in [0, 255]"},
           {[](QuantizedAdd& op) { op.operands[0].m = -1; },
            "multipliers must not be negative and the shift must be 1 to 62 "
            "(docs/quantization.md (11)): multiplier -1, shift "},
           {[](QuantizedAdd& op) { op.operands[1].m = -1; },
            "multipliers must not be negative and the shift must be 1 to 62 "
            "(docs/quantization.md (11)): multiplier "},
           {[](QuantizedAdd& op) { op.shift = 0; },
            "multipliers must not be negative and the shift must be 1 to 62 "
            "(docs/quantization.md (11)): multiplier "},
           {[](QuantizedAdd& op) { op.shift = 63; },
            "multipliers must not be negative and the shift must be 1 to 62 "
            "(docs/quantization.md (11)): multiplier "}},
          output_faults<QuantizedAdd>([](QuantizedAdd& op) -> StoredOutput& { return op.y; })));
  check_faults<QuantizedMul>(
      mul,
      joined<QuantizedMul>(
          {{[](QuantizedMul& op) { op.rows = 0; }, "extent 0 is not positive", true},
           {[](QuantizedMul& op) { op.channels = -1; }, "extent -1 is not positive", true},
           {[=](QuantizedMul& op) { op.rows = many; }, more, true},
           {[](QuantizedMul& op) { op.zero_a = 256; }, "zero point 256 is not in [0, 255]"},
           {[](QuantizedMul& op) { op.zero_b = -1; }, "zero point -1 is not in [0, 255]"},
           {[](QuantizedMul& op) { op.multiplier.m0 = 5; },
            "docs/quantization.md (8) does not allow multiplier 5 with shift "},
           {[](QuantizedMul& op) { op.multiplier.shift = 0; },
            "docs/quantization.md (8) does not allow multiplier "}},
          output_faults<QuantizedMul>([](QuantizedMul& op) -> StoredOutput& { return op.y; })));
  check_faults<QuantizedConcat>(
      concat,
      joined<QuantizedConcat>(
          {{[](QuantizedConcat& op) { op.parts.clear(); },
            "a concatenation needs at least one operand",
            true},
           {[](QuantizedConcat& op) { op.rows = 0; }, "extent 0 is not positive", true},
           {[](QuantizedConcat& op) { op.parts[1].run = 0; }, "extent 0 is not positive", true},
           {[=](QuantizedConcat& op) { op.rows = many; }, more, true},
           {[=](QuantizedConcat& op) { op.parts[2].run = kMostElements / 2; }, more, true},
           {[](QuantizedConcat& op) { op.parts[2].zero_x = 256; },
            "zero point 256 is not in [0, 255]"},
           {[](QuantizedConcat& op) { op.parts[1].multiplier.m0 = 5; },
            "docs/quantization.md (8) does not allow multiplier 5 with shift "},
           {[](QuantizedConcat& op) { op.parts[1].multiplier.shift = 63; },
            "docs/quantization.md (8) does not allow multiplier "}},
          output_faults<QuantizedConcat>(
              [](QuantizedConcat& op) -> StoredOutput& { return op.y; })));
}

TEST_CASE("pools refuse invalid members", "[integer][operation]") {
  check_faults<QuantizedMaxPool2d>(
      max_pool,
      joined<QuantizedMaxPool2d>(window_faults<QuantizedMaxPool2d>(),
                                 {// 5 + 2 rows and stride 2: a window would begin at row 6, after
                                  // the last row of the image.
                                  {[](QuantizedMaxPool2d& op) { op.shape.end_h = 1; },
                                   "padding [1, 1] leaves windows without elements of the image",
                                   true},
                                  {[](QuantizedMaxPool2d& op) { op.shape.o = 6; },
                                   "a pool must have as many outputs and groups as channels, got 3 "
                                   "channels, 6 outputs and 3 groups",
                                   true},
                                  {[](QuantizedMaxPool2d& op) { op.shape.groups = 1; },
                                   "a pool must have as many outputs and groups as channels, got 3 "
                                   "channels, 3 outputs and 1 groups",
                                   true},
                                  {[](QuantizedMaxPool2d& op) { op.shape.pad_h = 2; },
                                   "padding [2, 1] leaves windows without elements of the image",
                                   true},
                                  {[](QuantizedMaxPool2d& op) { op.shape.pad_w = 2; },
                                   "padding [1, 2] leaves windows without elements of the image",
                                   true}}));
  const std::string incomplete = "expected a multiplier for each of the 3 window sizes, got ";
  check_faults<QuantizedAvgPool2d>(
      avg_pool,
      joined<QuantizedAvgPool2d>(
          {{[](QuantizedAvgPool2d& op) { op.shape.pad_h = 2; },
            "padding [2, 1] leaves windows without elements of the image",
            true},
           {[](QuantizedAvgPool2d& op) { op.zero_x = 256; }, "zero point 256 is not in [0, 255]"},
           {[](QuantizedAvgPool2d& op) { op.zero_x = -1; }, "zero point -1 is not in [0, 255]"},
           {[](QuantizedAvgPool2d& op) { op.means.pop_back(); }, incomplete},
           {[](QuantizedAvgPool2d& op) { op.means.clear(); }, incomplete},
           {[](QuantizedAvgPool2d& op) { op.means.push_back(op.means.back()); }, incomplete},
           {[](QuantizedAvgPool2d& op) { std::swap(op.means[0], op.means[1]); },
            "multiplier 0 is for windows of "},
           {[](QuantizedAvgPool2d& op) { op.means[1].count = 3; },
            "multiplier 1 is for windows of 3 elements, expected "},
           {[](QuantizedAvgPool2d& op) { op.means[0].multiplier.m0 = 77; },
            "docs/quantization.md (8) does not allow multiplier 77 with shift "},
           {[](QuantizedAvgPool2d& op) { op.means[0].multiplier.m0 = -77; },
            "docs/quantization.md (8) does not allow multiplier -77 with shift "},
           {[](QuantizedAvgPool2d& op) { op.means[2].multiplier.shift = 0; },
            "docs/quantization.md (8) does not allow multiplier "},
           {[](QuantizedAvgPool2d& op) { op.means[2].multiplier.shift = 63; },
            "docs/quantization.md (8) does not allow multiplier "}},
          output_faults<QuantizedAvgPool2d>(
              [](QuantizedAvgPool2d& op) -> StoredOutput& { return op.y; })));
  QuantizedAvgPool2d large;
  large.shape = pool_shape(3000, 3000, 1, 3000, 1, 0);
  QUANTRAIN_CHECK_ERROR(large.validate("avg"),
                        QuantError,
                        "[avg] the sum over a window of 9000000 elements could overflow: at most "
                        "8421504");
  const kernels::Conv2dShape exceeds{.h = 2, .w = 2, .c = 1, .o = 1, .kh = 3, .kw = 3};
  QUANTRAIN_CHECK_ERROR(QuantizedMaxPool2d{exceeds}.validate("max"),
                        ShapeError,
                        "[max] kernel [3, 3] exceeds the padded image [2, 2]");
  kernels::Conv2dShape dilated = pool_shape(5, 5, 1, 2, 1, 0);
  dilated.dilation_w = 2;
  QUANTRAIN_CHECK_ERROR(QuantizedMaxPool2d{dilated}.validate("max"),
                        ShapeError,
                        "[max] a pool has dilation 1, got [1, 2]");
}

TEST_CASE("products refuse invalid members", "[integer][operation]") {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  using Change = std::function<void(QuantizedProduct&)>;
  struct ProductFault {
    Change change;
    std::string text;
    bool is_shape;
  };
  const auto resized = [](const auto& array, int64_t size) {
    using T = std::decay_t<decltype(array[0])>;
    std::vector<T> values(array.begin(), array.end());
    values.resize(static_cast<size_t>(size));
    return SharedArray<T>(std::move(values));
  };
  const std::vector<ProductFault> faults = {
      {[](QuantizedProduct& p) { p.zero_x = 256; }, "zero point 256 is not in [0, 255]", false},
      {[](QuantizedProduct& p) { p.zero_x = -1; }, "zero point -1 is not in [0, 255]", false},
      {[&](QuantizedProduct& p) { p.bias = resized(p.bias, 1); }, "1 biases for ", true},
      {[](QuantizedProduct& p) {
         p.weight = {p.weight.codes(), 0};
       },
       "weights have 1 to 8 bits, got 0",
       false},
      {[](QuantizedProduct& p) {
         p.weight = {p.weight.codes(), 9};
       },
       "weights have 1 to 8 bits, got 9",
       false},
      {[](QuantizedProduct& p) {
         std::vector<int8_t> weight(static_cast<size_t>(p.weight.size()), -1);
         weight[1] = 0;
         p.weight = {std::move(weight), 1};
       },
       "weight 0 does not fit in 1 bits",
       false},
      {[&](QuantizedProduct& p) {
         std::vector<int8_t> weight(static_cast<size_t>(p.weight.size()), 1);
         weight[2] = 8;
         p.weight = {std::move(weight), 4};
       },
       "weight 8 does not fit in 4 bits",
       false},
      {[&](QuantizedProduct& p) {
         std::vector<int8_t> weight(static_cast<size_t>(p.weight.size()), 1);
         weight.back() = -3;
         p.weight = {std::move(weight), 2};
       },
       "weight -3 does not fit in 2 bits",
       false},
      {[](QuantizedProduct& p) { edit(p.bias, [](auto& bias) { bias[1] = kMost; }); },
       "accumulator of channel 1 could reach ",
       false},
      {[](QuantizedProduct& p) { edit(p.output->m0, [](auto& m0) { m0.pop_back(); }); }, "", true},
      {[](QuantizedProduct& p) { edit(p.output->shift, [](auto& shift) { shift.pop_back(); }); },
       "",
       true},
      {[](QuantizedProduct& p) { edit(p.output->m0, [](auto& m0) { m0[0] = (1 << 30) - 1; }); },
       "docs/quantization.md (8) does not allow multiplier 1073741823 with shift ",
       false},
      {[](QuantizedProduct& p) { edit(p.output->m0, [](auto& m0) { m0.back() = -1; }); },
       "docs/quantization.md (8) does not allow multiplier -1 with shift ",
       false},
      {[](QuantizedProduct& p) { edit(p.output->shift, [](auto& shift) { shift[0] = 0; }); },
       "docs/quantization.md (8) does not allow multiplier ",
       false},
      {[](QuantizedProduct& p) { edit(p.output->shift, [](auto& shift) { shift.back() = 63; }); },
       "docs/quantization.md (8) does not allow multiplier ",
       false},
      {[](QuantizedProduct& p) { p.output->y.zero_point = 256; },
       "zero point 256 is not in [0, 255]",
       false},
      {[](QuantizedProduct& p) { p.output->y.lo = 16; },
       "output codes are clamped to [16, 15]",
       false},
      {[](QuantizedProduct& p) { p.output->y.lo = -1; },
       "output codes are clamped to [-1, 15]",
       false},
      {[](QuantizedProduct& p) { p.output->y.hi = 256; },
       "output codes are clamped to [0, 256]",
       false},
  };
  const auto of = [&](auto make) {
    using Op = decltype(make());
    std::vector<Fault<Op>> all;
    for (const ProductFault& fault : faults)
      all.push_back({[&fault](Op& op) { fault.change(op.product); }, fault.text, fault.is_shape});
    return all;
  };
  check_faults<QuantizedLinear>(
      linear,
      joined<QuantizedLinear>(
          of(linear),
          {{[](QuantizedLinear& op) { op.rows = 0; }, "extent 0 is not positive", true},
           {[](QuantizedLinear& op) { op.inputs = 0; }, "extent 0 is not positive", true},
           {[](QuantizedLinear& op) { op.outputs = 0; }, "extent 0 is not positive", true},
           {[](QuantizedLinear& op) { op.rows = kMostElements; },
            "a value has more than 1073741824 elements",
            true},
           {[](QuantizedLinear& op) { op.outputs = int64_t{1} << 62; },
            "a value has more than 1073741824 elements",
            true},
           {[](QuantizedLinear& op) { op.inputs = 4; },
            "6 weights for 2 outputs with 4 weights each",
            true},
           {[](QuantizedLinear& op) { op.outputs = 4; },
            "6 weights for 4 outputs with 3 weights each",
            true},
           {[&](QuantizedLinear& op) { op.product.weight = resized(op.product.weight.codes(), 5); },
            "5 weights for 2 outputs with 3 weights each",
            true},
           {[](QuantizedLinear& op) { op.product.weight = {}; },
            "0 weights for 2 outputs with 3 weights each",
            true}}));
  check_faults<QuantizedConv2d>(
      conv2d,
      joined<QuantizedConv2d>(joined<QuantizedConv2d>(of(conv2d), window_faults<QuantizedConv2d>()),
                              {{[](QuantizedConv2d& op) { op.shape.groups = 3; },
                                "3 groups do not divide 2 inputs and 4 outputs",
                                true},
                               {[](QuantizedConv2d& op) { op.shape.groups = 4; },
                                "4 groups do not divide 2 inputs and 4 outputs",
                                true},
                               {[](QuantizedConv2d& op) { op.shape.groups = 1; },
                                "36 weights for 4 outputs with 18 weights each",
                                true},
                               {[](QuantizedConv2d& op) { op.shape.dilation_h = 4; },
                                "a dilated kernel of [9, 3] exceeds the padded image [7, 6]",
                                true},
                               {[](QuantizedConv2d& op) { op.shape.dilation_w = 1 << 20; },
                                "a dilated kernel of [3, 2097153] exceeds the padded image [7, 6]",
                                true}}));
  // The whole message about a wrong number of shifts.
  QuantizedLinear op = linear();
  edit(op.product.output->shift, [](auto& shift) { shift.pop_back(); });
  QUANTRAIN_CHECK_ERROR(
      op.validate("fc"), ShapeError, "[fc] 2 multipliers and 1 shifts for 2 outputs");
  // Without an output, no multipliers are needed.
  op.product.output.reset();
  CHECK_NOTHROW(op.validate("fc"));
  // `none` has 0 weights, but 2^62 * 4 are required. In 64 bits this product wraps around to 0, and
  // the check must still fail.
  QuantizedProduct none;
  QUANTRAIN_CHECK_ERROR(validate(none, int64_t{1} << 62, 4, "fc"),
                        ShapeError,
                        "[fc] 0 weights for 4611686018427387904");
  // The largest accumulator bound that is allowed, and the next one, which is refused.
  QuantizedProduct edge;
  edge.weight = std::vector<int8_t>{1};
  edge.bias = std::vector<int32_t>{kMost - 255};
  CHECK_NOTHROW(validate(edge, 1, 1, "fc"));
  edge.bias = std::vector<int32_t>{kMost - 254};
  QUANTRAIN_CHECK_ERROR(
      validate(edge, 1, 1, "fc"),
      QuantError,
      "[fc] accumulator of channel 0 could reach 2147483648, expected less than 2147483648");
}

}  // namespace quantrain::integer
