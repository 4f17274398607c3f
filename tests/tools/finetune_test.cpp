// quantrain finetune: checkpoints, and what happens to the network between steps.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "layers/layers.hpp"
#include "layers/network/trace.hpp"
#include "quant/methods/gradual_bits.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/tools/program.hpp"

namespace quantrain {
namespace {

using test::bench;
using test::ContainsSubstring;
using test::ends_with;
using test::report_of;

/// 4 bits, learned, that begin with 6.
quant::QConfig falling() {
  quant::QConfig config = quant::QConfig::bits(4, 4);
  config.model.weight.estimator = config.model.activation.estimator = quant::Estimator::kLearned;
  config.model.weight.first_bits = config.model.activation.first_bits = 6;
  return config;
}

/// With 3 steps in a pass.
const std::string& falling_call() {
  static const std::string call = [] {
    write_file(bench().at("falling.json"), falling().to_json());
    return std::string("finetune float.safetensors --config falling.json --data big/idx --batch 8");
  }();
  return call;
}

void refused(const std::string& call, int status, const std::string& text) {
  CHECK_THAT(ends_with(status, call).err, ContainsSubstring(text));
}

void check_bits(const std::string& model, int bits) {
  for (const nlohmann::json& layer : report_of("info " + model).at("layers")) {
    if (!layer.at("weight_bits").is_null()) CHECK(layer.at("weight_bits") == bits);
  }
}

}  // namespace

TEST_CASE("finetune learns, goes on from a checkpoint, and writes log and curves", "[tools]") {
  const std::string call =
      "finetune float.safetensors --data big/idx --bits 4 --epochs 2 --batch 8 --lr 0.003 ";
  ends_with(0, call + "--checkpoint one --log one.jsonl --page one.html --output one.safetensors");
  CHECK(test::text_of(bench().at("one.jsonl")).find("\"epoch\"") != std::string::npos);
  CHECK(test::text_of(bench().at("one.html")).find("<svg") != std::string::npos);
  const nlohmann::json info = report_of("info one.safetensors");
  bool has_four = false;
  for (const nlohmann::json& layer : info.at("layers"))
    has_four = has_four || layer.at("weight_bits") == 4;
  CHECK(has_four);
  // Flags that are not given leave no trace: checkpoints of before they existed go on.
  for (const auto& entry : std::filesystem::directory_iterator(bench().at("one")))
    CHECK(test::text_of(entry.path().string()).find("--onnx-anew") == std::string::npos);
  // The same call again, from its checkpoints, gives the same file.
  ends_with(0, call + "--checkpoint one --resume --output two.safetensors");
  CHECK(test::read_bytes(bench().at("one.safetensors")) ==
        test::read_bytes(bench().at("two.safetensors")));
}

TEST_CASE("first bits fall while finetune trains, and a run that is killed goes on", "[tools]") {
  // All passes at 6 bits, at 5, and at 4.
  const std::string call = falling_call() + " --freeze-oscillating --epochs 3 --lr 0.01";
  CHECK(report_of(call + " --output fallen.safetensors").at("last_bits_from_epoch") == 3);
  check_bits("fallen.safetensors", 4);
  const std::vector<uint8_t> whole = test::read_bytes(bench().at("fallen.safetensors"));

  const std::string saving = call + " --checkpoint killed --checkpoint-every 1 --resume --output ";
  bench().run(saving + "never.safetensors",
              "",
              "& p=$!; until [ -n \"$(ls killed 2>/dev/null)\" ] || ! kill -0 $p; do :; done; "
              "kill -9 $p; wait $p");
  CHECK_FALSE(std::filesystem::exists(bench().at("never.safetensors")));
  ends_with(0, saving + "resumed.safetensors");
  CHECK((test::read_bytes(bench().at("resumed.safetensors")) == whole));
  // Again, from a checkpoint within the last pass.
  for (const std::string step : {"8", "9"}) {
    for (const auto& entry : std::filesystem::directory_iterator(bench().at("killed"))) {
      if (entry.path().stem().string().ends_with(step)) std::filesystem::remove(entry.path());
    }
  }
  ends_with(0, saving + "again.safetensors");
  CHECK((test::read_bytes(bench().at("again.safetensors")) == whole));
}

TEST_CASE("bits fall in the first half of finetune's passes, if there are enough", "[tools]") {
  const std::string call = falling_call();
  CHECK(report_of(call + " --epochs 8 --frozen-epochs 0").at("last_bits_from_epoch") == 5);
  CHECK(report_of(call + " --epochs 8").at("last_bits_from_epoch") == 3);
  CHECK(report_of(call + " --epochs 9 --frozen-epochs 1").at("last_bits_from_epoch") == 5);
  CHECK(report_of(call + " --epochs 99 --steps 9").at("last_bits_from_epoch") == 3);
  refused(call + " --epochs 2",
          2,
          "2 are too few: bits fall by 2, one after each pass, which needs at least 3");
  refused(call + " --epochs 3 --frozen-epochs 1", 2, "needs at least 4 with these --frozen-epochs");
  refused(
      call + " --epochs 99 --steps 8", 2, "one after each pass of 3 steps, which needs at least 9");
  // A budget is for the last bits.
  refused(call + " --ram 1", 1, "and may take 1");
  CHECK_THAT(ends_with(1, "quantize float.safetensors --config falling.json --data big/idx").err,
             ContainsSubstring("leave them out, or use quantrain finetune"));
}

TEST_CASE("finetune freezes for the last third, unless bits still fall", "[tools]") {
  const std::string plain = "finetune float.safetensors --bits 4 --data big/idx --batch 8";
  const auto frozen = [](const std::string& call) {
    return report_of(call).at("frozen_epochs").get<int64_t>();
  };
  CHECK(frozen(plain + " --epochs 2") == 0);
  CHECK(frozen(plain + " --epochs 3") == 1);
  CHECK(frozen(plain + " --epochs 6 --frozen-epochs 1") == 1);
  CHECK(frozen(plain + " --epochs 99 --steps 9") == 1);        // three passes
  CHECK(frozen(plain + " --steps 3 --frozen-epochs 1") == 0);  // one of three passes
  CHECK(frozen(falling_call() + " --epochs 4") == 1);
  CHECK(frozen(falling_call() + " --epochs 3") == 0);

  const auto trained = [&](const std::string& flags) {
    ends_with(0, plain + " --epochs 3 --lr 0.01 --network frozen.net" + flags);
    return test::read_bytes(bench().at("frozen.net"));
  };
  const std::vector<uint8_t> moving = trained(" --frozen-epochs 0");
  CHECK(trained(" --frozen-epochs 1") != moving);
  CHECK(trained("") == trained(" --frozen-epochs 1"));
  refused(plain + " --epochs 3 --frozen-epochs 3", 2, "needs one: at most 2");
}

TEST_CASE("finetune says if a network came frozen, and lets its ranges move on demand", "[tools]") {
  const std::string data = " --data big/idx --batch 8 --lr 0.01";
  ends_with(
      0,
      "finetune float.safetensors --bits 4 --epochs 2 --frozen-epochs 1 --network once.net" + data);
  const auto frozen = [](const nlohmann::json& report) {
    return report.at("frozen_epochs").get<int64_t>();
  };
  const std::string again = "finetune once.net --epochs 3 --network twice.net" + data;
  const auto ranges = [](const std::string& network) {
    std::vector<QParams> params;
    Network net = load_network(bench().at(network));
    for (const quant::FakeQuantize* slot : quant::Plugged(net).activations)
      params.push_back(slot->params());
    return params;
  };
  const std::string note = "--frozen-epochs 0 lets them move";
  CHECK_THAT(ends_with(0, again).err, ContainsSubstring(note));
  CHECK(frozen(report_of(again)) == 3);
  CHECK(ranges("twice.net") == ranges("once.net"));
  CHECK_THAT(ends_with(0, again + " --frozen-epochs 1").err, !ContainsSubstring(note));
  CHECK(frozen(report_of(again + " --frozen-epochs 1")) == 1);
  CHECK(ranges("twice.net") != ranges("once.net"));
}

TEST_CASE("finetune lets batch norms that came frozen move on demand", "[tools]") {
  Sequential net{Conv2d{1, 4, {.kernel = 3}}, BatchNorm2d{4}, ReLU{}, Flatten{}, Linear{352, 6}};
  save_network(trace(net, Tensor::full({1, 13, 10, 1}, 0.5f)), bench().at("norm.net"));
  const std::string data = " --data big/idx --batch 8 --epochs 2 --network normed.net";
  const auto is_frozen = [] {
    Network trained = load_network(bench().at("normed.net"));
    return quant::Plugged(trained).batch_norms.at(0)->folding().frozen.item() == 1;
  };
  ends_with(0, "finetune norm.net --bits 8 --frozen-epochs 1" + data);
  CHECK(is_frozen());
  std::filesystem::rename(bench().at("normed.net"), bench().at("norm.net"));
  ends_with(0, "finetune norm.net --frozen-epochs 0" + data);
  CHECK_FALSE(is_frozen());
}

TEST_CASE("bits of a prepared network fall on from those that it has", "[tools]") {
  quant::QConfig config = falling();
  config.input_range = Range{0.0f, 1.0f};
  Network net = load_network(bench().at("float.safetensors"));
  Random random(2);
  std::vector<float> pixels(8 * 13 * 10);
  for (float& pixel : pixels) pixel = random.uniform(0.0f, 1.0f);
  const Tensor images = Tensor::from({8, 13, 10, 1}, pixels);
  quant::prepare_qat(net, images, config);
  quant::calibrate(net, images);
  quant::lower_bits(net, 1);
  save_network(net, bench().at("partly.net"));
  const std::string data = " --data big/idx --batch 8 --epochs 2";
  CHECK(report_of("finetune partly.net --output rest.safetensors" + data)
            .at("last_bits_from_epoch") == 2);
  check_bits("rest.safetensors", 4);
  quant::freeze(net);
  save_network(net, bench().at("partly.net"));
  CHECK_THAT(ends_with(1, "finetune partly.net" + data).err,
             ContainsSubstring("is frozen with 5 bits: --frozen-epochs 0 lets them fall"));
  const std::string thawed = "finetune partly.net --ram 1000000 --frozen-epochs 0";
  CHECK(report_of(thawed + data).at("last_bits_from_epoch") == 2);
}

TEST_CASE("finetune freezes weights that oscillate, if their scales are learned", "[tools]") {
  const std::string call =
      "finetune float.safetensors --data big/idx --bits 2 --batch 2 --epochs 10 --lr 0.1 "
      "--freeze-oscillating";
  CHECK(report_of(call + " --learned").at("frozen_weights").get<int64_t>() > 0);
  CHECK_THAT(ends_with(1, call).err,
             ContainsSubstring("learn scales, by --learned or the file of --config"));
}

}  // namespace quantrain
