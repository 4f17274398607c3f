#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "framework/integer/integer_model.hpp"
#include "tests/catch.hpp"
#include "tests/examples/workplace.hpp"

namespace quantrain::test {

struct TinyProgram {
  std::string program;
  std::string score = "accuracy";
  int64_t outputs = 0;
};

/// Checks the files "report.json", "model" and "out" that a run has written to the workplace.
/// Returns the report.
inline nlohmann::json check_tiny_report(const Workplace& place, const TinyProgram& expected) {
  const auto report = nlohmann::json::parse(place.read("report.json"));
  CHECK(report.at("model") == expected.program);
  for (const char* part : {"float", "ptq", "qat", "integer"}) {
    const auto score = report.at(part).at(expected.score).get<double>();
    CHECK(score >= 0.0);
    CHECK(score <= 1.0);
  }
  CHECK(report.at("qat").at(expected.score) == report.at("integer").at(expected.score));
  const auto& parity = report.at("parity");
  CHECK(parity.at("images").get<int64_t>() > 0);
  CHECK(parity.at("logits") == parity.at("images").get<int64_t>() * expected.outputs);
  for (const char* difference : {"codes_different", "logits_different", "top1_disagreements"})
    CHECK(parity.at(difference) == 0);
  CHECK(parity.at("first_difference") == "");

  const IntegerModel model = IntegerModel::load(place.path("model"));
  CHECK(model.output_size() == expected.outputs);
  const auto& integer = report.at("integer");
  CHECK(integer.at("size_bytes") == model.size_bytes());
  CHECK(integer.at("memory_bytes").get<int64_t>() >= model.input_shape().elements());
  CHECK(integer.at("microseconds_per_call").at("1").get<double>() > 0.0);
  const std::string out = place.read("out");
  for (const std::string& row : {expected.score, std::string("\nPTQ "), std::string("\ninteger ")})
    CHECK_THAT(out, ContainsSubstring(row));
  return report;
}

}  // namespace quantrain::test
