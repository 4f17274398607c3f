#include "framework/integer/program_table.hpp"

#include <sstream>

#include "framework/core/error.hpp"
#include "framework/integer/model_profile.hpp"
#include "tests/catch.hpp"
#include "tests/framework/integer/programs.hpp"

namespace quantrain {
namespace {

using integer::Program;
using integer::test::every_operation;
using integer::test::random_bytes;

std::vector<std::string> lines_of(const auto& printed) {
  std::stringstream text;
  text << printed;
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("the summary of a program gives the kernel, shape, bits and sizes of every step",
          "[integer][program]") {
  const Program program = every_operation();
  const std::vector<integer::StepSummary> steps = summary(program);
  REQUIRE(steps.size() == program.steps.size());
  int64_t bytes = 8 * static_cast<int64_t>(program.values.size());
  int64_t multiply_adds = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const integer::Value& value = program.value(program.steps[i].output);
    CHECK(steps[i].name == value.name);
    CHECK(steps[i].kernel == kernel(program.steps[i].operation));
    CHECK(steps[i].output == value.shape);
    CHECK(steps[i].output_bits == (value.params ? value.params->type.bits : 32));
    CHECK((steps[i].weight_bits > 0) == (product(program.steps[i].operation) != nullptr));
    bytes += steps[i].bytes;
    multiply_adds += steps[i].multiply_adds;
  }
  CHECK(bytes == size_bytes(program));
  CHECK(multiply_adds == integer::multiply_adds(program));
  CHECK(multiply_adds > 0);
}

TEST_CASE("a model prints its inputs, its layers and the totals", "[integer][integer_model]") {
  const IntegerModel model(integer::test::mlp());
  const std::vector<std::string> lines = lines_of(model);
  const std::vector<integer::StepSummary> steps = summary(model.program());
  REQUIRE(lines.size() == 1 + 1 + steps.size() + 1);
  CHECK(lines[0].starts_with("layer "));
  CHECK(lines[0].ends_with(" weights  bits  bytes  multiply-adds"));
  CHECK(lines[1].starts_with(model.program().value(model.program().inputs[0]).name));
  for (size_t i = 0; i < steps.size(); ++i) {
    CHECK(lines[i + 2].starts_with(steps[i].name));
    CHECK(lines[i + 2].find(steps[i].kernel) != std::string::npos);
    CHECK(lines[i + 2].ends_with(' ' + std::to_string(steps[i].multiply_adds)));
  }
  CHECK(lines.back().starts_with("total "));
  CHECK(lines.back().find(std::to_string(model.size_bytes())) != std::string::npos);
}

TEST_CASE("a profile of a model times every step", "[integer][integer_model]") {
  const IntegerModel model(every_operation());
  const std::vector<uint8_t> a = random_bytes(3 * 32, 1);
  const std::vector<uint8_t> b = random_bytes(3 * 32, 2);
  const std::span<const uint8_t> x[] = {a, b};
  const ModelProfile result = profile(model, x, 3);
  CHECK(result.samples == 3);
  CHECK(result.calls == 3);
  REQUIRE(result.steps.size() == model.program().steps.size());
  double sum = 0.0;
  for (size_t i = 0; i < result.steps.size(); ++i) {
    const integer::Step& step = model.program().steps[i];
    CHECK(result.steps[i].name == model.program().value(step.output).name);
    CHECK(result.steps[i].kernel == kernel(step.operation));
    CHECK(result.steps[i].microseconds >= 0.0);
    sum += result.steps[i].microseconds;
  }
  CHECK(result.microseconds() == sum);
  CHECK(sum > 0.0);
  const std::vector<std::string> lines = lines_of(result);
  CHECK(lines.size() == result.steps.size() + 2);
  CHECK(lines.back().starts_with("total "));
  CHECK(lines.back().find(" 3 samples ") != std::string::npos);
}

TEST_CASE("a profile refuses batches that the model does not take", "[integer][integer_model]") {
  const IntegerModel model(every_operation());
  const std::vector<uint8_t> codes = random_bytes(257 * 32, 1);
  const auto check = [&](size_t first, size_t second, const char* text) {
    const std::span<const uint8_t> x[] = {std::span(codes).first(first),
                                          std::span(codes).first(second)};
    QUANTRAIN_CHECK_ERROR(profile(model, x), ShapeError, text);
  };
  check(0, 0, "input 0 has 0 codes, expected the codes of 1 to 256 samples [4, 4, 2]");
  check(33, 32, "input 0 has 33 codes");
  check(64, 32, "input 1 has 32 codes");
  check(257 * 32, 257 * 32, "input 0 has 8224 codes");
  QUANTRAIN_CHECK_ERROR(
      profile(model, codes), ShapeError, "[profile] the network has 2 inputs, got 1");
  const IntegerModel small(integer::test::mlp());
  QUANTRAIN_CHECK_ERROR(profile(small, codes, 0), DataError, "calls is 0");
}

}  // namespace quantrain
