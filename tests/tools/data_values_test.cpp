// What values, bytes and names in data mean for a model.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "framework/data/npy.hpp"
#include "tests/tools/program.hpp"

namespace quantrain {
namespace {

using Json = nlohmann::json;
using test::bench;
using test::Ended;
using test::ends_with;
using test::report_of;

std::vector<int32_t> integers_from(const std::string& model, const std::string& data) {
  ends_with(0, "run " + model + " --data " + data + " --as integers --output i.npy");
  return read_npy(bench().at("i.npy")).labels();
}

/// Writes images of "big" with halved bytes, as bytes and as b / 255, and a model made for them.
void make_dark() {
  if (std::filesystem::exists(bench().at("dark.safetensors"))) return;
  std::vector<uint8_t> bytes = test::read_bytes(bench().at("big/images.bin"));
  std::vector<float> floats;
  for (uint8_t& byte : bytes) {
    byte /= 2;
    floats.push_back(static_cast<float>(byte) / 255.0f);
  }
  const std::string shape = "(24, 13, 10)";
  test::write_bytes(bench().at("dark_bytes.npy"), test::npy("|u1", shape, bytes));
  test::write_bytes(bench().at("dark.npy"), test::npy("<f4", shape, test::bytes_of(floats)));
  ends_with(
      0, "quantize float.safetensors --data dark.npy --output dark.safetensors --network dark.net");
}

}  // namespace

TEST_CASE("a byte is b / 255, whatever range the model has", "[tools]") {
  make_dark();
  for (const std::string model : {"dark.safetensors", "dark.net"}) {
    const std::vector<int32_t> expected = integers_from(model, "dark.npy");
    CHECK(integers_from(model, "dark_bytes.npy") == expected);
    CHECK(integers_from(model, "dark_bytes.npy --range 0,1") == expected);
    // Bytes of the model's own range are codes.
    CHECK(integers_from(model, "dark_bytes.npy --range 0,0.498") != expected);
  }
  CHECK(report_of("run dark.safetensors --data dark_bytes.npy").at("bytes_mean") == "0 to 1");
  // The test part is read like the training part.
  const std::string labels = " --target big/labels.npy --test-target big/labels.npy --test ";
  const std::string call = "quantize float.safetensors --data dark.npy" + labels;
  CHECK(report_of(call + "dark_bytes.npy").at("accuracy_integer") ==
        report_of(call + "dark.npy").at("accuracy_integer"));
  const Json all = report_of("compare float.safetensors dark.safetensors --data dark_bytes.npy");
  for (const Json& layer : all.at("layers")) {
    INFO(layer);
    CHECK((layer.at("signal_to_noise").is_null() || layer.at("signal_to_noise") > 20.0));
  }
  // A network that was made for bytes from -1 to 1 says so.
  ends_with(
      0, "quantize float.safetensors --data dark_bytes.npy --range -1,1 --output m1.safetensors");
  CHECK(integers_from("m1.safetensors", "dark_bytes.npy") ==
        integers_from("m1.safetensors", "dark_bytes.npy --range -1,1"));
}

TEST_CASE("values that saturate are told", "[tools]") {
  // Seven of twenty values are beyond [0, 1].
  std::vector<float> values;
  for (int64_t i = 0; i < test::Bench::kSamples * 130; ++i)
    values.push_back(i % 20 < 7 ? 2.0f : static_cast<float>(i % 20) / 20.0f);
  test::write_bytes(bench().at("wide.npy"),
                    test::npy("<f4", "(24, 13, 10)", test::bytes_of(values)));
  const std::string data = " --data wide.npy --target big/labels.npy";
  const std::string test =
      " --data big/images.npy --target big/labels.npy --test wide.npy "
      "--test-target big/labels.npy";
  const std::vector<std::string> calls = {
      "run integer.safetensors" + data,
      "quantize float.safetensors" + test,
      "finetune float.safetensors --steps 1" + test,
      "diagnose prepared.safetensors" + data,
      "compare float.safetensors integer.safetensors --data wide.npy",
      "export integer.safetensors --to c99 --name w --test 24 --data "
      "wide.npy"};
  for (const std::string& call : calls) {
    const Ended ended = ends_with(0, call + " --json");
    INFO(call << '\n' << ended.err);
    CHECK_THAT(ended.err, test::ContainsSubstring("35 % of the input's values saturate: "));
    CHECK_THAT(ended.err, test::ContainsSubstring(" takes 0 to 1\n"));
    CHECK(Json::parse(ended.out).at("warnings").size() == 1);
  }
  CHECK(ends_with(0, "run float.safetensors" + data).err.empty());  // it has no codes
}

TEST_CASE("class folders are found by name, and none may be missing", "[tools]") {
  namespace fs = std::filesystem;
  fs::copy(bench().at("big/png"), bench().at("five"), fs::copy_options::recursive);
  fs::remove_all(bench().at("five/class2"));
  const Ended missing = bench().run("run float.safetensors --data five");
  CHECK(missing.status == 1);
  CHECK_THAT(missing.err, test::ContainsSubstring("has 5 folders, the model gives 6 classes"));
  ends_with(0, "quantize float.safetensors --data big/png --test five --output named.safetensors");
  const Json found = report_of("run named.safetensors --data five --output classes.npy");
  const std::vector<int32_t> given = read_npy(bench().at("classes.npy")).labels();
  REQUIRE(given.size() == 20);
  int right = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    const int32_t folder = static_cast<int32_t>(i) / 4;
    right += given[i] == (folder < 2 ? folder : folder + 1);
  }
  CHECK(found.at("accuracy").get<double>() == right / 20.0);
  fs::rename(bench().at("five/class5"), bench().at("five/cat"));
  const Ended unknown = bench().run("run named.safetensors --data five");
  CHECK(unknown.status == 1);
  CHECK_THAT(unknown.err, test::ContainsSubstring("has a class \"cat\", the model has: class0"));
  const Ended other =
      bench().run("finetune float.safetensors --steps 1 --data big/png --test five");
  CHECK(other.status == 1);
  CHECK_THAT(other.err,
             test::ContainsSubstring("has a class \"cat\", the training data have: class0"));
}

TEST_CASE("chosen samples are of all classes, also if rows repeat in turn", "[tools]") {
  std::vector<uint8_t> bytes;
  for (int row = 0; row < 40; ++row) bytes.insert(bytes.end(), 130, uint8_t(row % 4 * 60));
  test::write_bytes(bench().at("turns.npy"), test::npy("|u1", "(40, 13, 10)", bytes));
  ends_with(0, "run float.safetensors --data turns.npy --samples 10 --as outputs --output t.npy");
  const NpyArray outputs = read_npy(bench().at("t.npy"));
  const std::vector<float> values = outputs.floats();
  REQUIRE(outputs.shape[0] == 10);
  std::set<float> first;  // of each sample
  for (size_t row = 0; row < 10; ++row) first.insert(values[row * values.size() / 10]);
  CHECK(first.size() > 1);
}

TEST_CASE("run gives no class the name of another", "[tools]") {
  Network net = load_network(bench().at("float.safetensors"));
  net.set_classes({"a", "b", "c"});
  save_network(net, bench().at("three.safetensors"));
  const Ended ended = ends_with(0, "run three.safetensors --data big/images.npy --output c.csv");
  CHECK_THAT(ended.err, test::ContainsSubstring("names 3 classes and gives 6"));
  CHECK(test::text_of(bench().at("c.csv")).rfind("sample,class\n", 0) == 0);
  const Ended labels = bench().run("run three.safetensors --data big/png");
  CHECK(labels.status == 1);
  CHECK_THAT(labels.err, test::ContainsSubstring("names 3 classes and gives 6"));
}

TEST_CASE("int8 values are the codes of a .tflite whose input is int8", "[tools]") {
  std::vector<uint8_t> codes = test::read_bytes(bench().at("small/images.bin"));
  const std::vector<int32_t> expected = integers_from(test::kTflite, "small/images.bin");
  for (uint8_t& code : codes) code ^= 0x80;  // q + 128
  test::write_bytes(bench().at("i8.npy"), test::npy("|i1", "(24, 8, 8)", codes));
  CHECK(integers_from(test::kTflite, "i8.npy") == expected);
  const Ended said = bench().run("run " + test::kTflite + " --data i8.npy --range 0,1");
  CHECK(said.status == 1);
  CHECK_THAT(said.err, test::ContainsSubstring("are codes of"));
}

TEST_CASE("diagnose advises --range in the units of the data", "[tools]") {
  const std::vector<uint8_t> bytes = test::read_bytes(bench().at("big/images.bin"));
  std::vector<float> floats;
  std::vector<uint8_t> fifths;
  for (const uint8_t byte : bytes) {
    fifths.push_back(static_cast<uint8_t>(byte / 5));
    floats.push_back(static_cast<float>(fifths.back()) / 255.0f);
  }
  const std::string shape = "(24, 13, 10)";
  test::write_bytes(bench().at("fifths.npy"), test::npy("<f4", shape, test::bytes_of(floats)));
  test::write_bytes(bench().at("fifths8.npy"), test::npy("|u1", shape, fifths));
  ends_with(
      0,
      "quantize float.safetensors --data big/nchw.npy --range 0,1 --mean 0.5 --deviation 0.25 "
      "--network z.net");
  const auto advice = [](const std::string& data) {
    const Json report = report_of("diagnose z.net --data " + data);
    for (const Json& finding : report.at("findings")) {
      const auto text = finding.at("advice").get<std::string>();
      if (finding.at("layer") == "input") return text;
    }
    return std::string();
  };
  // The network sees -2 to -1.2.
  const std::string text = advice("fifths.npy");
  INFO(text);
  const std::string before = "the data's own range: --range ";
  const size_t start = text.find(before);
  REQUIRE(start != std::string::npos);
  float low = 9.0f;
  float high = 9.0f;
  REQUIRE(std::sscanf(text.c_str() + start + before.size(), "%f,%f", &low, &high) == 2);
  CHECK_THAT(low, Catch::Matchers::WithinAbs(0.0, 1.0 / 255.0));
  CHECK_THAT(high, Catch::Matchers::WithinAbs(0.2, 1.0 / 255.0));
  CHECK_THAT(text, test::ContainsSubstring(", of values before --mean and --deviation"));
  CHECK_THAT(text, !test::ContainsSubstring("floats"));
  // Of bytes, --range says what they mean, too.
  CHECK_THAT(advice("fifths8.npy"), test::ContainsSubstring(", of samples saved as floats"));
}

TEST_CASE("quantize says how well it did without labels, too", "[tools]") {
  const Json report = report_of("quantize float.safetensors --data big/images.npy --range 0,2");
  CHECK(report.at("samples") == test::Bench::kSamples);
  CHECK(report.at("input_low") == 0.0);
  CHECK(report.at("input_high") == 2.0);
  // A step of 8 bits is a 256th of the range.
  CHECK(report.at("signal_to_noise").get<double>() > 20.0);
  CHECK(report.at("signal_to_noise").get<double>() < 80.0);
}

}  // namespace quantrain
