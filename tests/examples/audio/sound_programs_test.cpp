#include <nlohmann/json.hpp>
#include <string>

#include "examples/data/bearing.hpp"
#include "examples/data/speech.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "tests/catch.hpp"
#include "tests/examples/tiny_report.hpp"
#include "tests/examples/workplace.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {
namespace {

using test::Workplace;

constexpr const char* kBearings =
    "--clips 6 --validation-clips 5 --test-clips 6 --epochs 2 --qat-epochs 1 --timing-calls 1 ";
constexpr const char* kWords =
    "--voices 4 --takes 1 --epochs 2 --qat-epochs 1 --timing-calls 1 --batch 16 ";

}  // namespace

TEST_CASE("the autoencoder trains and converts, and its threshold is saved", "[examples][audio]") {
  const Workplace place;
  for (const std::string bits : {"8", "4"}) {
    REQUIRE(place.start("anomaly_detection",
                        kBearings + ("--weight-bits " + bits) + " --activation-bits " + bits +
                            " --report '" + place.path("report.json") + "' --save '" +
                            place.path("model") + '\'') == 0);
    const auto report = test::check_tiny_report(
        place, {.program = "anomaly_detection", .score = "area_under_curve", .outputs = 640});
    // With six clips of each kind the area is inaccurate, so the limit is low; guessing would give
    // 0.5.
    CHECK(report.at("float").at("area_under_curve").get<double>() > 0.6);
    const auto model = IntegerModel::load(place.path("model"));
    CHECK(std::stof(model.metadata().at("threshold")) > 0.0f);
    CHECK(model.input_features().size() == 640);
    CHECK_THAT(place.read("out"), test::ContainsSubstring(" of 6 healthy, "));
  }
}

TEST_CASE("a bearing sounds the same for the same seed, and a pit is audible",
          "[examples][audio]") {
  using namespace examples;
  const Sound healthy = bearing_sound(BearingFault::kNone, 0.0f, 0.5, 1, 2);
  CHECK(healthy.samples.size() == 8000);
  CHECK(healthy.samples == bearing_sound(BearingFault::kNone, 0.0f, 0.5, 1, 2).samples);
  CHECK(healthy.samples != bearing_sound(BearingFault::kNone, 0.0f, 0.5, 1, 3).samples);
  MelSpectrogram mel({.window = 8000, .bands = 40});
  const std::vector<float> expected = mel.decibels(healthy);
  for (const BearingFault fault : kBearingFaults) {
    const std::vector<float> heard = mel.decibels(bearing_sound(fault, 1.0f, 0.5, 1, 2));
    float most = 0.0f;
    for (size_t i = 0; i < heard.size(); ++i) most = std::max(most, heard[i] - expected[i]);
    CHECK(most > 5.0f);
  }
}

TEST_CASE("without espeak-ng nothing is spoken, and the message says what to install",
          "[examples][audio]") {
  const Workplace place;
  place.check_start_fails("keyword_spotting",
                          kWords + ("--cache '" + place.path("cache")) + '\'',
                          "apt-get install espeak-ng",
                          "PATH=/nowhere ");
}

// The test speech_tests runs these cases, if espeak-ng is installed.
TEST_CASE("words are spoken once, and a network trains on them and converts", "[.][speech]") {
  const Workplace place;
  const auto start = [&](const std::string& copies, const std::string& model) {
    return place.start("keyword_spotting",
                       kWords + ("--cache '" + place.path("cache")) + "' --report '" +
                           place.path("report.json") + "' --copies " + copies + " --save '" +
                           place.path(model) + '\'');
  };
  REQUIRE(start("1", "model") == 0);
  CHECK_THAT(place.read("out"), test::ContainsSubstring("speaking the words into "));
  test::check_tiny_report(place, {.program = "keyword_spotting", .outputs = 12});
  CHECK(IntegerModel::load(place.path("model")).metadata().at("classes") ==
        "yes, no, up, down, left, right, on, off, stop, go, unknown, silence");
  // Three voices say eleven words for training, and one voice for the test.
  int64_t words = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(place.path("cache/words-0"))) {
    if (entry.path().extension() == ".wav") ++words;
  }
  CHECK(words == 4 * 11);

  REQUIRE(start("1", "again") == 0);
  CHECK(place.read("out").find("speaking") == std::string::npos);
  CHECK(place.read("model") == place.read("again"));
  // With another number of copies, the features are computed again, from the same words. The
  // program prints that it speaks, but keeps the existing files.
  REQUIRE(start("2", "copies") == 0);
  CHECK_THAT(place.read("out"), test::ContainsSubstring("speaking the words into "));
  CHECK(place.read("model") != place.read("copies"));
}

TEST_CASE("speaking into an unusable folder throws, and a spoken word can be heard",
          "[.][speech]") {
  const test::TemporaryFolder folder;
  const std::vector<examples::Utterance> words{{.voice = "m1", .word = "yes", .take = 0}};
  test::write_bytes(folder / "m1", {});  // a file where the voice's folder should be
  CHECK_THROWS(examples::speak(folder.path(), words, 0));
  examples::speak(folder / "there", words, 0);
  const examples::Sound said = examples::read_wav(folder / "there/m1/yes-0.wav");
  CHECK(said.rate == 22050);
  CHECK(said.samples.size() > 4000);
  const examples::Sound heard = examples::heard(said, Random(1));
  CHECK(heard.rate == 16000);
  CHECK(heard.samples.size() == 16000);
}

}  // namespace quantrain
