#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "framework/integer/integer_model.hpp"
#include "layers/network/network_file.hpp"
#include "quant/lowering/convert.hpp"
#include "tests/catch.hpp"
#include "tests/examples/workplace.hpp"

namespace quantrain {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;
using test::Workplace;

const char* const kPrograms[] = {"mnist_mlp", "mnist_cnn", "mnist_bncnn", "mnist_resnet"};

constexpr const char* kQuick = "--epochs 2 --qat-epochs 1 --batch 16 --timing-calls 1 --lr 5e-3 ";

void check_times(const Json& times) {
  CHECK(times.size() == 3);
  for (const char* batch : {"1", "64", "256"}) CHECK(times.at(batch).get<double>() > 0.0);
}

void check_fraction(const Json& value) {
  CHECK(value.get<double>() >= 0.0);
  CHECK(value.get<double>() <= 1.0);
}

}  // namespace

TEST_CASE("every program trains, converts, and reports what it found", "[examples]") {
  const Workplace place;
  for (const std::string program : kPrograms) {
    INFO(program);
    REQUIRE(place.run(program,
                      std::string(kQuick) + "--seed 3 --threads 2 --limit 80 --report '" +
                          place.path("report.json") + "' --save '" + place.path("model") + '\'') ==
            0);
    const Json report = Json::parse(place.read("report.json"));
    CHECK(report.size() == 17);
    CHECK(report.at("model") == program);
    CHECK(report.at("dataset") == "data");
    CHECK(report.at("threads") == 2);
    CHECK(report.at("seed") == 3);
    CHECK(report.at("batch") == 16);
    CHECK_FALSE(report.at("isa").get<std::string>().empty());
    CHECK(report.at("float").at("seconds_per_epoch").size() == 2);
    CHECK(report.at("qat").at("seconds_per_epoch").size() == 1);
    for (const char* part : {"float", "ptq", "qat", "integer"})
      check_fraction(report.at(part).at("accuracy"));
    // Guessing gives an accuracy of 0.1. The other networks need more than ten steps to exceed 0.3,
    // for example because the running statistics of batch norms need more.
    if (program == "mnist_mlp") CHECK(report.at("float").at("accuracy").get<double>() > 0.3);
    const Json& integer = report.at("integer");
    CHECK(integer.at("weight_bits") == 8);
    CHECK(integer.at("activation_bits") == 8);
    check_times(integer.at("microseconds_per_call"));
    check_times(report.at("float_inference").at("microseconds_per_call"));
    const Json& parity = report.at("parity");
    CHECK(parity.at("images") == 50);
    CHECK(parity.at("top1_disagreements") == 0);
    CHECK(parity.at("codes").get<int64_t>() >= 50 * 28 * 28);
    CHECK(parity.at("logits") == 50 * 10);
    for (const char* equal : {"codes_equal", "logits_equal"}) CHECK(parity.at(equal) == 1.0);
    for (const char* difference :
         {"codes_different", "max_code_difference", "logits_different", "max_logit_difference"}) {
      CHECK(parity.at(difference) == 0);
    }
    CHECK(parity.at("first_difference") == "");
    CHECK(report.at("measured_samples") == 50);
    CHECK(report.at("lowest_output").at("channel").get<int>() < 10);
    CHECK(report.at("lowest_output").at("decibels").get<double>() > 0.0);
    check_fraction(report.at("largest_saturated_share").at("share"));
    CHECK(report.at("lowest_signal_to_noise").at("decibels").get<double>() > 10.0);
    CHECK_FALSE(report.at("lowest_signal_to_noise").at("layer").get<std::string>().empty());
    CHECK(report.at("measured_samples").get<int64_t>() > 0);
    CHECK(report.at("lowest_output").at("decibels").get<double>() > 10.0);
    CHECK(report.at("lowest_output").at("channel").get<int64_t>() >= 0);
    CHECK(report.at("peak_rss_mib").get<double>() > 1.0);

    const IntegerModel model = IntegerModel::load(place.path("model"));
    CHECK(model.output_size() == 10);
    CHECK(integer.at("size_bytes") == model.size_bytes());
    CHECK(fs::file_size(place.path("model")) > static_cast<uintmax_t>(model.size_bytes()));
    CHECK(place.files().size() == 2);

    const std::string out = place.read("out");
    CHECK(place.read("err").empty());
    for (const char* text : {"float epoch 2/2: loss",
                             "QAT epoch 1/1: loss",
                             "\nfloat ",
                             "\nPTQ ",
                             "\nQAT (simulated) ",
                             "\ninteger ",
                             " samples: 0 of ",
                             " codes, 0 of 500 logits, 0 predictions differ\n"}) {
      CHECK_THAT(out, test::ContainsSubstring(text));
    }
    CHECK(out.find('\r') == std::string::npos);
  }
}

TEST_CASE("the saved model is the same byte for byte at any number of threads", "[examples]") {
  const Workplace place;
  for (const std::string program : {"mnist_bncnn", "mnist_resnet"}) {
    for (const std::string threads : {"1", "2"}) {
      REQUIRE(place.run(program,
                        std::string(kQuick) + "--threads " + threads + " --save '" +
                            place.path("model" + threads) + '\'') == 0);
    }
    CHECK(place.read("model1") == place.read("model2"));
  }
}

TEST_CASE("--network keeps the network that was trained with quantization", "[examples]") {
  const Workplace place;
  REQUIRE(place.run("mnist_mlp",
                    std::string(kQuick) + "--save '" + place.path("model") + "' --network '" +
                        place.path("network") + '\'') == 0);
  Network net = load_network(place.path("network"));
  CHECK(quant::convert(net, net.example()).hash() ==
        IntegerModel::load(place.path("model")).hash());
}

TEST_CASE("a model has the numbers of bits that the flags ask for", "[examples]") {
  const Workplace place;
  REQUIRE(place.run("mnist_mlp",
                    std::string(kQuick) + "--weight-bits 4 --activation-bits 3 --report '" +
                        place.path("report.json") + '\'') == 0);
  const Json integer = Json::parse(place.read("report.json")).at("integer");
  CHECK(integer.at("weight_bits") == 4);
  CHECK(integer.at("activation_bits") == 3);
}

TEST_CASE("--shift changes the training images, and so the model", "[examples]") {
  const Workplace place;
  for (const std::string shift : {"0", "2"}) {
    REQUIRE(place.run("mnist_mlp",
                      std::string(kQuick) + "--shift " + shift + " --save '" +
                          place.path("model" + shift) + '\'') == 0);
  }
  CHECK(place.read("model0") != place.read("model2"));
}

TEST_CASE("the last third of QAT is frozen unless a flag says otherwise", "[examples]") {
  const Workplace place;
  const auto model = [&](const std::string& flags) {
    REQUIRE(place.run("mnist_mlp",
                      "--epochs 1 --qat-epochs 3 --batch 16 --timing-calls 1 --lr 5e-3 " + flags +
                          " --save '" + place.path("frozen") + '\'') == 0);
    return place.read("frozen");
  };
  const std::string moving = model("--frozen-epochs 0");
  CHECK(model("--frozen-epochs 1") != moving);
  CHECK(model("") == model("--frozen-epochs 1"));
}

TEST_CASE("--help lists the flags and trains nothing", "[examples]") {
  const Workplace place;
  for (const std::string program : kPrograms) {
    CHECK(place.run(program, "--help") == 0);
    const std::string help = place.read("out");
    for (const char* flag : {"--data",
                             "--epochs",
                             "--qat-epochs",
                             "--batch",
                             "--lr",
                             "--qat-lr",
                             "--seed",
                             "--shift",
                             "--threads",
                             "--limit",
                             "--weight-bits",
                             "--activation-bits",
                             "--save",
                             "--report",
                             "--help"}) {
      CHECK_THAT(help, test::ContainsSubstring(flag));
    }
  }
}

TEST_CASE("invalid flags are errors of one line", "[examples]") {
  const Workplace place;
  for (const char* flags : {"--epochs 0",       "--epochs -1",
                            "--epochs two",     "--epochs 1.5",
                            "--qat-epochs 0",   "--batch 0",
                            "--lr 0",           "--lr -1",
                            "--lr nan",         "--lr inf",
                            "--qat-lr 0",       "--seed -1",
                            "--shift -1",       "--threads -2",
                            "--limit 0",        "--weight-bits 0",
                            "--weight-bits 9",  "--activation-bits 16",
                            "--timing-calls 0", "--epochs",
                            "--colour",         "stray"}) {
    place.check_fails("mnist_mlp", flags, "[flags]");
  }
  place.check_fails("mnist_mlp", "--limit 97", "97");
  place.check_fails("mnist_mlp", "--qat-epochs 2 --frozen-epochs 2", "leaves none of 2");
  for (const char* shift : {"--shift 28", "--shift 1000000000"}) {
    place.check_fails(
        "mnist_mlp",
        shift,
        std::string(shift) + " can move an image [28, 28, 1] out of view: use less than 28");
    CHECK(place.read("out").empty());
  }
  const std::string same = " '" + place.path("both") + '\'';
  place.check_fails(
      "mnist_mlp", "--save" + same + " --report" + same, "--save and --report name the same file");
  place.check_fails("mnist_mlp",
                    "--save" + same + " --report '" + place.path("data/../both") + '\'',
                    "--save and --report name the same file");
  CHECK(place.files().empty());
}

TEST_CASE("outputs that cannot be written are found before training", "[examples]") {
  const Workplace place;
  for (const std::string flag : {"--save", "--report"}) {
    place.check_fails(
        "mnist_mlp", flag + " '" + place.path("no/such/folder") + '\'', "no/such/folder");
    place.check_fails("mnist_mlp", flag + " '" + place.path("data") + '\'', "data");
    CHECK(place.read("out").empty());
  }
}

TEST_CASE("missing or damaged data are errors that name the file", "[examples]") {
  const Workplace place;
  place.check_fails("mnist_bncnn",
                    "--data '" + place.path("nowhere") + "' --save '" + place.path("model") + '\'',
                    "nowhere");
  fs::resize_file(place.path("data/t10k-images-idx3-ubyte"), 1000);
  place.check_fails(
      "mnist_bncnn", "--save '" + place.path("model") + '\'', "t10k-images-idx3-ubyte");
  fs::remove(place.path("data/train-labels-idx1-ubyte"));
  place.check_fails(
      "mnist_bncnn", "--save '" + place.path("model") + '\'', "train-labels-idx1-ubyte");
  CHECK(place.files().empty());
}

TEST_CASE("a training that diverges is an error and leaves nothing behind", "[examples]") {
  const Workplace place;
  const std::string flags = "--epochs 2 --batch 16 --lr 1e30 --save '" + place.path("model") + '\'';
  place.check_fails("mnist_mlp", flags, "the loss is");
  CHECK(place.files().empty());
}

}  // namespace quantrain
