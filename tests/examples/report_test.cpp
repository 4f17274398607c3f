#include "examples/common/report.hpp"

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/catch.hpp"

namespace quantrain::examples {

TEST_CASE("a report hides no difference between integers and simulation", "[examples][report]") {
  Report report;
  report.parity.images = 10000;
  report.parity.layers = {
      {"input", 7840000, 0, 0}, {"block.conv", 200000000, 3, 1}, {"head", 100000, 2, 41, true}};
  report.parity.logits = 100000;
  report.parity.logits_different = 2;
  report.parity.max_logit_difference = 41;
  std::ostringstream table;
  table << report;
  CHECK_THAT(
      table.str(),
      test::ContainsSubstring("\nintegers against simulation, 10000 samples: 3 of 207840000 "
                              "codes, 2 of 100000 logits, 0 predictions differ\n"
                              "first difference: \"block.conv\"; codes are off by at most 1, "
                              "logits by at most 41\n"));
  const auto json = nlohmann::json::parse(to_json(report)).at("parity");
  CHECK(json.at("codes") == 207840000);
  CHECK(json.at("codes_different") == 3);
  CHECK(json.at("codes_equal").get<double>() < 1.0);
  CHECK(json.at("max_code_difference") == 1);
  CHECK(json.at("logits_different") == 2);
  CHECK(json.at("max_logit_difference") == 41);
  CHECK(json.at("first_difference") == "block.conv");
}

}  // namespace quantrain::examples
