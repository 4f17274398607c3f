#include "framework/integer/integer_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>

#include "framework/core/buffer.hpp"
#include "framework/core/error.hpp"
#include "framework/integer/memory_plan.hpp"
#include "tests/catch.hpp"
#include "tests/child.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/framework/kernels/integer_testing.hpp"

namespace quantrain {
namespace {

using integer::Program;
using integer::QuantizedLinear;
using integer::QuantizedLookup;
using integer::Step;
using integer::Value;
using integer::View;
using integer::test::Builder;
using integer::test::every_operation;
using integer::test::kSigned;
using integer::test::kX;
using integer::test::kY;
using integer::test::mlp;
using integer::test::random_bytes;
using integer::test::random_program;
using integer::test::RandomProduct;
using test::for_each_isa;
using test::for_each_thread_count;

/// Runs a program with separate memory for every value. Returns the integers of each value; codes
/// are as stored.
std::vector<std::vector<int32_t>> interpret(const Program& program,
                                            int64_t n,
                                            const std::vector<std::vector<uint8_t>>& x) {
  std::vector<std::vector<uint8_t>> bytes(program.values.size());
  std::vector<std::vector<int32_t>> integers(program.values.size());
  for (size_t i = 0; i < x.size(); ++i) bytes[static_cast<size_t>(program.inputs[i])] = x[i];
  for (const Step& step : program.steps) {
    std::vector<const uint8_t*> inputs;
    for (const int id : step.inputs) inputs.push_back(bytes[static_cast<size_t>(id)].data());
    const auto y = static_cast<size_t>(step.output);
    const auto count = static_cast<size_t>(n * output_size(step.operation));
    void* output = nullptr;
    if (gives_accumulators(step.operation)) {
      integers[y].resize(count);
      output = integers[y].data();
    } else {
      bytes[y].resize(count);
      output = bytes[y].data();
    }
    integer::PreparedOperation(step.operation).run(n, inputs, output);
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (integers[i].empty()) integers[i].assign(bytes[i].begin(), bytes[i].end());
  }
  return integers;
}

/// The integers of an output, as run() returns them.
std::vector<int32_t> as_output(const Value& value, std::vector<int32_t> integers) {
  if (value.is_codes()) {
    for (int32_t& code : integers) code -= stored_zero_point(*value.params);
  }
  return integers;
}

std::vector<std::vector<uint8_t>> random_inputs(const Program& program, int64_t n, uint64_t seed) {
  std::vector<std::vector<uint8_t>> x;
  for (const int id : program.inputs)
    x.push_back(random_bytes(n * program.value(id).shape.elements(), seed + x.size()));
  return x;
}

std::vector<std::vector<int32_t>> run_all(const IntegerModel& model,
                                          int64_t n,
                                          const std::vector<std::vector<uint8_t>>& x) {
  std::vector<std::vector<int32_t>> y;
  for (size_t i = 0; i < model.output_count(); ++i)
    y.emplace_back(static_cast<size_t>(n * model.output_size(i)), -12345);
  const std::vector<std::span<const uint8_t>> inputs(x.begin(), x.end());
  const std::vector<std::span<int32_t>> outputs(y.begin(), y.end());
  model.run_codes(inputs, outputs);
  return y;
}

template <class T>
std::vector<std::span<const T>> spans(const std::vector<std::vector<T>>& lists) {
  return {lists.begin(), lists.end()};
}

}  // namespace

TEST_CASE("a model gives the results of its operations run one by one",
          "[integer][integer_model]") {
  std::vector<Program> programs{every_operation(), mlp(), integer::test::wide_concat(65)};
  for (uint64_t seed = 0; seed < 60; ++seed) programs.push_back(random_program(seed));
  for (size_t p = 0; p < programs.size(); ++p) {
    const Program& program = programs[p];
    const IntegerModel model(program);
    CHECK(model.program() == program);
    for (const int64_t n : {1, 3}) {
      CAPTURE(p, n);
      const auto x = random_inputs(program, n, p);
      const auto expected = interpret(program, n, x);
      const auto y = run_all(model, n, x);
      REQUIRE(y.size() == program.outputs.size());
      for (size_t i = 0; i < y.size(); ++i) {
        const int id = program.outputs[i];
        CHECK(y[i] == as_output(program.value(id), expected[static_cast<size_t>(id)]));
      }
      std::vector<const uint8_t*> inputs;
      for (const auto& input : x) inputs.push_back(input.data());
      size_t next = 0;
      model.trace(n, inputs, [&](size_t step, const void* output) {
        REQUIRE(step == next++);
        const auto id = static_cast<size_t>(program.steps[step].output);
        std::vector<int32_t> seen(expected[id].size());
        if (program.values[id].is_codes()) {
          std::copy_n(static_cast<const uint8_t*>(output), seen.size(), seen.begin());
        } else {
          std::memcpy(seen.data(), output, seen.size() * sizeof(int32_t));
        }
        CHECK(seen == expected[id]);
      });
      CHECK(next == program.steps.size());
    }
  }
}

TEST_CASE("chunks, instruction sets and threads do not change the results of a model",
          "[integer][integer_model]") {
  const Program program = every_operation();
  const int64_t n = 2 * IntegerModel::kChunk + 5;
  const auto x = random_inputs(program, n, 9);
  const auto expected = interpret(program, n, x);
  for_each_isa([&] {
    const IntegerModel model(program);
    for_each_thread_count([&] {
      const auto y = run_all(model, n, x);
      CHECK(y[0] == expected[10]);
      CHECK(y[1] == as_output(program.value(7), expected[7]));
      CHECK(y[2] == expected[10]);
    });
  });
}

TEST_CASE("real inputs and outputs match the integers", "[integer][integer_model]") {
  const Program program = every_operation();
  const IntegerModel model(program);
  const int64_t n = 300;
  std::vector<std::vector<float>> x;
  std::vector<std::vector<uint8_t>> codes;
  for (size_t i = 0; i < 2; ++i) {
    Random random(i + 4);
    std::vector<float>& values = x.emplace_back(static_cast<size_t>(n * 32));
    for (float& value : values) value = random.uniform(-3.0f, 6.0f);
    model.quantize_input(values, codes.emplace_back(values.size()), i);
    const QParams& params = model.input_params(i);
    for (size_t k = 0; k < values.size(); ++k) {
      const double code =
          double{std::nearbyint(values[k] / params.scale[0])} + params.zero_point[0];
      const double clamped =
          std::clamp<double>(code, params.type.qmin(), params.type.qmax()) + (i == 1 ? 128 : 0);
      REQUIRE(codes.back()[k] == clamped);
    }
  }
  const auto integers = run_all(model, n, codes);
  std::vector<std::vector<float>> y;
  for (size_t i = 0; i < 3; ++i) y.emplace_back(integers[i].size());
  model.run(spans(x), std::vector<std::span<float>>(y.begin(), y.end()), Outside::kSaturate);
  for (size_t i = 0; i < 3; ++i) {
    const Value& value = program.value(program.outputs[i]);
    for (size_t k = 0; k < y[i].size(); ++k) {
      const double scale =
          value.params ? double{value.params->scale[0]} : value.scale[k % value.scale.size()];
      REQUIRE(y[i][k] == static_cast<float>(scale * integers[i][k]));
    }
  }
}

TEST_CASE("a model runs on bytes or floats and gives integers, real logits or classes",
          "[integer][integer_model]") {
  const IntegerModel model(mlp());
  const int64_t n = 600;  // more than two chunks
  const std::vector<uint8_t> bytes = random_bytes(n * 12, 2);
  std::vector<float> images;
  for (const uint8_t byte : bytes) images.push_back(static_cast<float>(byte) / 255.0f);
  const auto count = static_cast<size_t>(n * model.output_size());
  std::vector<int32_t> integers(count);
  std::vector<int32_t> from_floats(count);
  std::vector<float> logits(count);
  std::vector<float> logits_of_floats(count);
  std::vector<int32_t> classes(static_cast<size_t>(n));
  std::vector<int32_t> classes_of_floats(classes.size());
  model.run_codes(bytes, integers);
  model.run(images, from_floats);
  model.run_codes(bytes, logits);
  model.run(images, logits_of_floats);
  model.classify_codes(bytes, classes);
  model.classify(images, classes_of_floats);
  CHECK(integers == from_floats);
  CHECK(logits == logits_of_floats);
  CHECK(classes == classes_of_floats);
  for (size_t i = 0; i < count; ++i)
    CHECK(logits[i] == static_cast<float>(model.logit_scale() * integers[i]));
  for (size_t i = 0; i < classes.size(); ++i) {
    const auto row = integers.begin() + static_cast<std::ptrdiff_t>(i) * model.output_size();
    CHECK(classes[i] == std::max_element(row, row + model.output_size()) - row);
  }
  CHECK(interpret(model.program(), n, {bytes})[2] == integers);

  SECTION("from several threads at once") {
    std::vector<std::vector<int32_t>> results(4, std::vector<int32_t>(count));
    std::vector<std::thread> threads;
    for (auto& result : results) threads.emplace_back([&] { model.run_codes(bytes, result); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& result : results) CHECK(result == integers);
  }
  SECTION("with the same results on every instruction set") {
    for_each_isa([&] {
      const IntegerModel again(model.program());
      std::vector<int32_t> result(count);
      again.run_codes(bytes, result);
      CHECK((result == integers));
    });
  }
  SECTION("with no samples") {
    const std::span<const uint8_t> nothing;
    model.run_codes(nothing, std::span<int32_t>());
    model.run(std::span<const float>(), std::span<float>());
    model.classify_codes(nothing, std::span<int32_t>());
    model.quantize_input({}, {});
    model.trace(0, std::vector<const uint8_t*>(1), [](size_t, const void*) {});
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(QUANTRAIN_SANITIZE_ADDRESS)
  SECTION("without allocating memory from the system") {
    const std::span<const uint8_t> part(bytes.data(), 64 * 12);
    const std::span<int32_t> result(integers.data(), static_cast<size_t>(64 * model.output_size()));
    const int64_t before = pool::counters().system_allocations;
    for (int i = 0; i < 3; ++i) model.run_codes(part, result);
    const int64_t warm = pool::counters().system_allocations;
    for (int i = 0; i < 10; ++i) model.run_codes(part, result);
    CHECK(pool::counters().system_allocations == warm);
    CHECK(warm >= before);
  }
#endif
}

TEST_CASE("among equal logits, the lowest class wins", "[integer][integer_model]") {
  // The output is the input itself, so the samples below are the logits.
  Builder b;
  b.program.outputs = {b.input({5}, kX)};
  const IntegerModel model(b.program);
  std::vector<int32_t> classes(3);
  model.classify_codes(std::vector<uint8_t>{1, 9, 9, 2, 9, 0, 0, 0, 0, 0, 3, 2, 1, 0, 4}, classes);
  CHECK(classes == std::vector<int32_t>{1, 0, 4});
}

TEST_CASE("an input, or a view of it, may be an output", "[integer][integer_model]") {
  Builder b;
  const int x = b.input({2, 3}, kSigned);
  const int view = b.codes("view", View{6}, {x}, {6}, kSigned);
  const int again = b.codes("again", View{6}, {view}, {3, 2}, kSigned);
  b.program.outputs = {again, x, view};
  const IntegerModel model(b.program);
  for (const int64_t n : {1, 2, 257}) {
    const auto inputs = random_inputs(b.program, n, 3);
    std::vector<int32_t> expected;
    for (const uint8_t code : inputs[0]) expected.push_back(code - 125);
    for (const auto& y : run_all(model, n, inputs)) CHECK(y == expected);
  }
  // The same holds for float inputs, whose codes are in the model's own memory.
  const std::vector<float> reals{0.0f, 0.05f, -0.05f, 0.1f, 1.0f, -0.5f};
  std::vector<std::vector<float>> y(3, std::vector<float>(6));
  const std::vector<std::span<const float>> in{reals};
  model.run(in, std::vector<std::span<float>>(y.begin(), y.end()));
  for (const auto& result : y) {
    for (size_t i = 0; i < 6; ++i) CHECK(result[i] == test::Approx(reals[i]).margin(1e-6));
  }
}

TEST_CASE("a lookup that runs in place does not overwrite the caller's input",
          "[integer][integer_model]") {
  Builder b;
  const int x = b.input({50}, kX);
  const auto lookup = QuantizedLookup::rescale(50, kX, kX, Activation::kRelu);
  b.program.outputs = {b.codes("y", lookup, {x}, {50}, kX)};
  const IntegerModel model(b.program);
  CHECK(plan_memory(b.program).offsets == std::vector<int64_t>{0, 0});
  const auto inputs = random_inputs(b.program, 4, 1);
  const auto before = inputs;
  const auto y = run_all(model, 4, inputs);
  CHECK(inputs == before);
  for (size_t i = 0; i < y[0].size(); ++i) CHECK(y[0][i] == std::max<int32_t>(inputs[0][i], 7) - 7);
}

TEST_CASE("a model can output codes and accumulators, and the same value several times",
          "[integer][integer_model]") {
  Builder b;
  const int x = b.input({6}, kX);
  const RandomProduct p({.outputs = 4, .length = 6, .x = kX}, 5);
  const int sums = b.accumulators("sums", QuantizedLinear{1, 6, 4, p.product}, {x}, {4}, p.scale);
  const int codes = b.codes("codes", QuantizedLinear{1, 6, 4, p.behind(kY)}, {x}, {4}, kY);
  b.program.outputs = {codes, sums, codes, sums, sums};
  const IntegerModel model(b.program);
  CHECK(model.output_count() == 5);
  const int64_t n = IntegerModel::kChunk + 3;
  const auto inputs = random_inputs(b.program, n, 1);
  const auto expected = interpret(b.program, n, inputs);
  const auto y = run_all(model, n, inputs);
  for (const size_t i : {size_t{0}, size_t{2}})
    CHECK(y[i] == as_output(b.program.value(codes), expected[2]));
  for (const size_t i : {size_t{1}, size_t{3}, size_t{4}}) CHECK(y[i] == expected[1]);
}

TEST_CASE("a model describes its inputs and outputs", "[integer][integer_model]") {
  const IntegerModel model(every_operation());
  CHECK(model.input_count() == 2);
  CHECK(model.output_count() == 3);
  CHECK(model.input_shape() == Shape{4, 4, 2});
  CHECK(model.input_shape(1) == Shape{4, 4, 2});
  CHECK(model.input_params() == kX);
  CHECK(model.input_params(1) == kSigned);
  CHECK(model.output_size() == 3);
  CHECK(model.output_size(1) == 24);
  CHECK(model.logit_scale(1) == double{kX.scale[0]});
  QUANTRAIN_CHECK_ERROR(
      model.logit_scale(), QuantError, "[logits] the output has 3 scales: run() on");
  CHECK(IntegerModel(mlp()).logit_scale() == 0.0125);
  QUANTRAIN_CHECK_ERROR(model.input_shape(2), ShapeError, "[IntegerModel] no input 2: there are 2");
  QUANTRAIN_CHECK_ERROR(model.input_params(2), ShapeError, "no input 2: there are 2");
  QUANTRAIN_CHECK_ERROR(model.output_size(3), ShapeError, "no output 3: there are 3");
  QUANTRAIN_CHECK_ERROR(model.logit_scale(3), ShapeError, "no output 3: there are 3");
  CHECK(model.size_bytes() == integer::size_bytes(model.program()));
  CHECK(model.hash() == integer::content_hash(model.program()));
  Program invalid = every_operation();
  invalid.outputs.clear();
  QUANTRAIN_CHECK_ERROR(IntegerModel{invalid}, GraphError, "[program] there is no output");
}

TEST_CASE("a model takes the memory planned for n samples, but at most that of one chunk",
          "[integer][integer_model]") {
  const IntegerModel model(every_operation());
  const int64_t sample = plan_memory(model.program()).sample_bytes;
  CHECK(sample > 0);
  const auto planned = [&](int64_t n) { return integer::memory(model.program(), n); };
  for (const int64_t n : {1, 7, 1000}) CHECK(planned(n) > n * sample);  // kernels need memory, too
  CHECK(planned(0) == 0);
  CHECK(planned(std::numeric_limits<int64_t>::max()) == int64_t{1} << 62);
  CHECK(model.memory(0) == 0);
  CHECK(model.memory(1) == planned(1));
  CHECK(model.memory(7) == planned(7));
  CHECK(model.memory(IntegerModel::kChunk) == planned(IntegerModel::kChunk));
  for (const int64_t n : {IntegerModel::kChunk + 1, 5 * IntegerModel::kChunk + 70})
    CHECK(model.memory(n) ==
          std::max(planned(IntegerModel::kChunk), planned(n % IntegerModel::kChunk)));
  CHECK(model.memory(std::numeric_limits<int64_t>::max()) >= planned(IntegerModel::kChunk));
  CHECK(model.memory(-1) == 0);
}

TEST_CASE("a model refuses inputs and outputs of wrong sizes", "[integer][integer_model]") {
  const IntegerModel model(mlp());
  const std::vector<uint8_t> x(24);
  std::vector<float> reals(24);
  std::vector<int32_t> y(8);
  std::vector<float> logits(8);
  std::vector<int32_t> classes(2);
  model.run_codes(x, y);
  QUANTRAIN_CHECK_ERROR(model.run_codes(std::span(x).first(23), y),
                        ShapeError,
                        "[IntegerModel] 23 elements are not a whole number of samples [12]");
  QUANTRAIN_CHECK_ERROR(model.run_codes(x, std::span(y).first(7)),
                        ShapeError,
                        "2 samples give 4 numbers each, but there is room for 7");
  QUANTRAIN_CHECK_ERROR(model.run_codes(std::span(x).first(12), y),
                        ShapeError,
                        "1 samples give 4 numbers each, but there is room for 8");
  QUANTRAIN_CHECK_ERROR(model.run(reals, std::span(logits).first(4)), ShapeError, "room for 4");
  QUANTRAIN_CHECK_ERROR(model.run_codes(x, std::span(logits).first(4)), ShapeError, "room for 4");
  QUANTRAIN_CHECK_ERROR(model.run(reals, std::span(y).first(4)), ShapeError, "room for 4");
  QUANTRAIN_CHECK_ERROR(model.classify_codes(x, std::span(classes).first(1)),
                        ShapeError,
                        "[IntegerModel] there is room for 1 classes, but 2 samples have 2");
  std::vector<int32_t> three(3);
  QUANTRAIN_CHECK_ERROR(model.classify(reals, three), ShapeError, "there is room for 3 classes");
  QUANTRAIN_CHECK_ERROR(model.classify_codes(std::span(x).first(23), std::span(classes).first(1)),
                        ShapeError,
                        "23 elements are not a whole number of samples [12]");
  for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    reals[13] = bad;
    QUANTRAIN_CHECK_ERROR(
        model.run(reals, y), DataError, "[IntegerModel] the input has a NaN or an infinity");
    QUANTRAIN_CHECK_ERROR(model.classify(reals, classes), DataError, "NaN");
    std::vector<uint8_t> codes(24);
    QUANTRAIN_CHECK_ERROR(model.quantize_input(reals, codes), DataError, "NaN");
  }
  reals[13] = 0.0f;
  std::vector<uint8_t> codes(23);
  QUANTRAIN_CHECK_ERROR(model.quantize_input(reals, codes), ShapeError, "23 codes for 24 values");
  codes.resize(24);
  QUANTRAIN_CHECK_ERROR(
      model.quantize_input(reals, codes, 1), ShapeError, "no input 1: there are 1");
  const auto ignore = [](size_t, const void*) {};
  const uint8_t* const one[] = {x.data()};
  QUANTRAIN_CHECK_ERROR(model.trace(-1, one, ignore), ShapeError, "trace takes 0 to 256 samples");
  QUANTRAIN_CHECK_ERROR(
      model.trace(257, one, ignore), ShapeError, "trace takes 0 to 256 samples, got 257");
  const uint8_t* const two[] = {x.data(), x.data()};
  QUANTRAIN_CHECK_ERROR(model.trace(1, two, ignore), ShapeError, "the network has 1 inputs, got 2");

  const IntegerModel several(every_operation());
  const std::vector<uint8_t> image(64);
  std::vector<int32_t> sums(6);
  QUANTRAIN_CHECK_ERROR(several.run_codes(image, sums),
                        ShapeError,
                        "the network has 2 inputs and 3 outputs, got 1 and 1");
  const std::vector<uint8_t> longer(96);
  std::vector<int32_t> squares(48);
  std::vector<int32_t> more(6);
  const std::vector<std::span<int32_t>> outputs{sums, squares, more};
  using Lists = std::vector<std::span<const uint8_t>>;
  several.run_codes(Lists{image, image}, outputs);
  QUANTRAIN_CHECK_ERROR(several.run_codes(Lists{image, longer}, outputs),
                        ShapeError,
                        "input 1 has 3 samples, input 0 has 2");
  QUANTRAIN_CHECK_ERROR(several.run_codes(Lists{image, image, image}, outputs),
                        ShapeError,
                        "the network has 2 inputs and 3 outputs, got 3 and 3");
  QUANTRAIN_CHECK_ERROR(several.run_codes(Lists{image, image}, std::span(outputs).first(2)),
                        ShapeError,
                        "the network has 2 inputs and 3 outputs, got 2 and 2");
}

TEST_CASE("a model that was moved from keeps its program", "[integer][integer_model]") {
  IntegerModel first(mlp());
  const quantrain::test::Child child = quantrain::test::in_child([&]() -> std::string {
    const IntegerModel second = std::move(first);
    return first.hash() == second.hash() ? "same" : "other";  // NOLINT(bugprone-use-after-move)
  });
  CHECK(child.text == "same");
}

TEST_CASE("if a later chunk has a NaN, only the results of earlier chunks are written",
          "[integer][model]") {
  const IntegerModel model(mlp());
  constexpr size_t kSamples = 2 * IntegerModel::kChunk + 5;
  std::vector<float> reals(kSamples * 12);
  for (size_t i = 0; i < reals.size(); ++i) reals[i] = static_cast<float>(i % 101) / 101.0f;
  std::vector<int32_t> expected(kSamples * 4);
  model.run(reals, expected);
  constexpr int32_t kUntouched = -123456789;
  for (const size_t bad : {size_t{0}, size_t{255}, size_t{256}, size_t{300}, kSamples - 1}) {
    CAPTURE(bad);
    std::vector<float> with_nan = reals;
    with_nan[bad * 12 + 7] = std::nanf("");
    std::vector<int32_t> y(expected.size(), kUntouched);
    QUANTRAIN_CHECK_ERROR(model.run(with_nan, y), DataError, "the input has a NaN");
    const size_t written = bad / IntegerModel::kChunk * IntegerModel::kChunk * 4;
    CHECK(std::equal(y.begin(), y.begin() + static_cast<ptrdiff_t>(written), expected.begin()));
    CHECK(std::count(y.begin(), y.end(), kUntouched) == static_cast<ptrdiff_t>(y.size() - written));
  }
}

}  // namespace quantrain
