#include <nlohmann/json.hpp>
#include <string>

#include "framework/data/csv.hpp"
#include "framework/integer/integer_model.hpp"
#include "tests/catch.hpp"
#include "tests/examples/tiny_report.hpp"
#include "tests/examples/workplace.hpp"

namespace quantrain {
namespace {

using test::Workplace;

constexpr const char* kQuickTiny =
    "--epochs 3 --qat-epochs 1 --batch 16 --timing-calls 1 --lr 5e-3 ";

std::string outputs(const Workplace& place) {
  return "--report '" + place.path("report.json") + "' --save '" + place.path("model") + "' ";
}

/// A table of a room's temperature and pressure. The window is open in the rows with low
/// temperatures.
std::string room_csv(int64_t rows) {
  std::string text = "window,temperature,pressure\n";
  for (int64_t i = 0; i < rows; ++i) {
    const bool open = i % 3 == 0;
    text += (open ? "open," : "shut,") + std::to_string((open ? 5 : 20) + i % 4) + ',' +
            std::to_string(100000 + 10 * (i % 50)) + '\n';
  }
  return text;
}

}  // namespace

TEST_CASE("a network trains on the generated table, and the model takes raw values", "[examples]") {
  const Workplace place;
  const std::string made = "--rows 400 --made '" + place.path("pump.csv") + "' ";
  REQUIRE(place.start("sensor_classification", kQuickTiny + made + outputs(place)) == 0);
  const auto report =
      test::check_tiny_report(place, {.program = "sensor_classification", .outputs = 4});
  CHECK(report.at("dataset") == "pump.csv");
  CHECK(report.at("parity").at("images") == 100);
  CHECK(report.at("integer").at("accuracy").get<double>() > 0.5);  // 0.25 is chance

  const IntegerModel model = IntegerModel::load(place.path("model"));
  CHECK(model.metadata().at("classes") == "bearing, cavitation, healthy, leak");
  const std::string names = model.metadata().at("features");
  CHECK(names == "temperature_c, pressure_pa, vibration_g, current_a, flow_m3_s, speed_rpm");
  const CsvTable table = read_csv(place.path("pump.csv"));
  REQUIRE(table.rows() == 400);
  const std::vector<std::string> columns(table.columns().begin(), table.columns().end() - 1);
  const std::vector<int32_t> labels = table.classes("state").labels;
  std::vector<int32_t> predicted(400);
  model.classify(table.floats(columns), predicted);
  int64_t right = 0;
  for (size_t i = 0; i < predicted.size(); ++i) right += predicted[i] == labels[i] ? 1 : 0;
  CHECK(right > 200);

  const std::string first = place.read("pump.csv");
  REQUIRE(place.start("sensor_classification", kQuickTiny + made) == 0);
  CHECK(place.read("pump.csv") == first);
  REQUIRE(place.start("sensor_classification", kQuickTiny + made + "--seed 1") == 0);
  CHECK(place.read("pump.csv") != first);
}

TEST_CASE("a network trains on a user's table, whichever column has the classes", "[examples]") {
  const Workplace place;
  write_file(place.path("room.csv"), room_csv(200));
  const std::string data = "--data '" + place.path("room.csv") + "' ";
  REQUIRE(place.start("sensor_classification",
                      kQuickTiny + data + "--label window --weight-bits 4 --activation-bits 4 " +
                          outputs(place)) == 0);
  const auto report =
      test::check_tiny_report(place, {.program = "sensor_classification", .outputs = 2});
  CHECK(report.at("integer").at("accuracy") == 1.0);
  const IntegerModel model = IntegerModel::load(place.path("model"));
  const std::vector<float> rows{5, 100100, 21, 100200};
  std::vector<int32_t> windows(2);
  model.classify(rows, windows);
  CHECK(windows == std::vector<int32_t>{0, 1});

  place.check_start_fails("sensor_classification", data, "\"window\"");  // text, not a number
  place.check_start_fails("sensor_classification", data + "--label door", "\"door\"");
  place.check_start_fails(
      "sensor_classification", "--data '" + place.path("nowhere.csv") + '\'', "nowhere.csv");
  write_file(place.path("flat.csv"), "x,y,state\n1,2,a\n1,3,b\n1,4,a\n1,5,b\n1,4,a\n1,5,b\n");
  place.check_start_fails(
      "sensor_classification", "--data '" + place.path("flat.csv") + '\'', "(x) is 1 in all");
}

TEST_CASE("ResNet-8 trains on MNIST's files and on CIFAR-10's", "[examples]") {
  const Workplace place;
  REQUIRE(place.run("image_classification", kQuickTiny + ("--limit 48 " + outputs(place))) == 0);
  test::check_tiny_report(place, {.program = "image_classification", .outputs = 10});
  CHECK(IntegerModel::load(place.path("model")).input_shape() == Shape{32, 32, 1});

  std::filesystem::create_directory(place.path("cifar"));
  for (const std::string part : {"data_batch_1",
                                 "data_batch_2",
                                 "data_batch_3",
                                 "data_batch_4",
                                 "data_batch_5",
                                 "test_batch"}) {
    std::string file;
    for (char label = 0; label < 10; ++label)
      file += label + std::string(3072, static_cast<char>(20 * label));
    write_file(place.path("cifar/" + part + ".bin"), file);
  }
  const std::string data = "--data '" + place.path("cifar") + "' --limit 50 ";
  REQUIRE(place.start("image_classification", kQuickTiny + data + outputs(place)) == 0);
  const auto report =
      test::check_tiny_report(place, {.program = "image_classification", .outputs = 10});
  CHECK(report.at("dataset") == "cifar");
  CHECK(IntegerModel::load(place.path("model")).input_shape() == Shape{32, 32, 3});

  test::fs::resize_file(place.path("cifar/data_batch_3.bin"), 3072);
  place.check_start_fails("image_classification", data, "data_batch_3.bin: has 3072 bytes");
}

TEST_CASE("--help lists a program's own flags, and invalid values are errors", "[examples]") {
  const Workplace place;
  CHECK(place.start("sensor_classification", "--help") == 0);
  for (const char* flag : {"--label", "--made", "--rows", "--weight-bits", "--checkpoint"})
    CHECK_THAT(place.read("out"), test::ContainsSubstring(flag));
  CHECK(place.read("out").find("--shift") == std::string::npos);
  place.check_start_fails("sensor_classification", "--rows 99", "[flags]");
  place.check_fails("image_classification", "--shift 32", "[flags]");
}

}  // namespace quantrain
