// What a user of the program reads: options, reports, advice.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "docs/guide/shapes.hpp"
#include "framework/data/npy.hpp"
#include "layers/linear.hpp"
#include "layers/onnx/reader.hpp"
#include "layers/onnx/writer.hpp"
#include "quant/import/onnx/import_quantized_onnx.hpp"
#include "quant/lowering/convert.hpp"
#include "tests/tools/program.hpp"

namespace quantrain {
namespace {

using Json = nlohmann::json;
using test::bench;
using test::ContainsSubstring;
using test::Ended;
using test::ends_with;
using test::report_of;

/// Images of the guide's network.
void write_shapes(const std::string& name) {
  const Dataset images = shapes(32, 1);
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < images.size(); ++i) {
    const auto image = images.image(i);
    bytes.insert(bytes.end(), image.begin(), image.end());
  }
  test::write_bytes(bench().at(name), test::npy("|u1", "(32, 16, 16)", bytes));
}

const std::string kShapes = QUANTRAIN_TEST_DATA "/../../docs/guide/shapes";
const std::string kLenet = test::kExports + "lenet.onnx";
const std::string kCnn = test::kExports + "ds_cnn.onnx";
const std::string kQuantized = QUANTRAIN_TEST_DATA "/quantized/";

}  // namespace

TEST_CASE("of two models, each .onnx file that quantrain did not write gets the options for them",
          "[tools]") {
  const std::string data = " --data big/images.npy --samples 4 --onnx-outputs nothing";
  CHECK_THAT(ends_with(2, "compare integer.safetensors prepared.safetensors" + data).err,
             ContainsSubstring("[--onnx-outputs] is only for .onnx files"));
  CHECK_THAT(ends_with(1, "compare integer.safetensors " + kCnn + data).err,
             ContainsSubstring("\"nothing\""));
}

TEST_CASE("--print-config prints what the flags mean, for --config", "[tools]") {
  const std::string flags = " --weight-bits 4 --layer Linear=8/7 --observer percentile";
  const Ended printed = ends_with(0, "quantize" + flags + " --print-config");
  const Json config = Json::parse(printed.out);
  CHECK(config.at("model").at("weight").at("bits") == 4);
  CHECK(config.at("model").at("activation").at("bits") == 8);
  CHECK(config.at("types").at("Linear").at("activation").at("bits") == 7);
  write_file(bench().at("config.json"), printed.out);
  CHECK(ends_with(0, "finetune --print-config --config config.json").out == printed.out);
  CHECK(report_of("plan float.safetensors --config config.json") ==
        report_of("plan float.safetensors" + flags));
  CHECK_THAT(ends_with(2, "plan --bits 9 --print-config").err, ContainsSubstring(" to 8"));
}

TEST_CASE("plan prints why a network has no integer form, as JSON, too", "[tools]") {
  const Ended ended = ends_with(1, "plan " + kLenet + " --json");
  const Json report = Json::parse(ended.out);
  CHECK(report.at("convertible") == false);
  REQUIRE(report.at("reasons").size() == 1);
  CHECK_THAT(report.at("reasons")[0].at("reason").get<std::string>(),
             ContainsSubstring("log_softmax has no integer form"));
  CHECK_THAT(ended.err, ContainsSubstring("log_softmax has no integer form"));
  CHECK_THAT(ends_with(1, "plan " + kLenet).out, ContainsSubstring("log_softmax"));
  CHECK_THAT(ends_with(0, "plan float.safetensors").out,
             ContainsSubstring("accumulator <=: the largest sum"));
}

TEST_CASE("plan calls a network convertible or not, but not a wrong call", "[tools]") {
  const Ended wrong = ends_with(1, "plan " + kCnn + " --layer nothing=4 --json");
  CHECK(wrong.out.empty());
  CHECK_THAT(wrong.err, ContainsSubstring("\"nothing\""));
  CHECK(ends_with(1, "plan " + kCnn + " --layer LSTM=4").out.empty());
  // 8 bits are too many for so long a sum; 4 are not.
  NetworkParts parts;
  parts.inputs = {{.name = "x", .shape = {40'000}, .range = Range{0.0f, 1.0f}}};
  parts.steps = {{"fc", std::make_shared<Linear>(40'000, 2), {"x"}}};
  parts.outputs = {"fc"};
  save_network(Network(std::move(parts)), bench().at("long.safetensors"));
  const Ended ended = ends_with(1, "plan long.safetensors --json");
  const Json report = Json::parse(ended.out);
  CHECK(report.at("convertible") == false);
  CHECK_THAT(report.at("reasons")[0].at("reason").get<std::string>(),
             ContainsSubstring("sums of 40000 products are longer than"));
  CHECK(report_of("plan long.safetensors --weight-bits 4").at("convertible") == true);
}

TEST_CASE("run without --output shows the results of the first samples", "[tools]") {
  const std::string call = "run " + kCnn + " --data big/images.npy";
  const std::string some = ends_with(0, call).out;
  CHECK_THAT(some, ContainsSubstring("\n    19  "));
  CHECK_THAT(some, !ContainsSubstring("\n    20  "));
  CHECK_THAT(some, ContainsSubstring("and 4 more rows: --all prints them\n"));
  const std::string all = ends_with(0, call + " --all").out;
  CHECK_THAT(all, ContainsSubstring("\n    23  "));
  CHECK_THAT(all, !ContainsSubstring("more rows"));
  const Json results = report_of(call + " --as outputs").at("results");
  REQUIRE(results.size() == test::Bench::kSamples);
  ends_with(0, call + " --as outputs --output all.npy");
  const std::vector<float> values = read_npy(bench().at("all.npy")).floats();
  for (size_t k = 0; k < 6; ++k)
    CHECK(results[23].at("output" + std::to_string(k)) == static_cast<double>(values[23 * 6 + k]));
  // A row has at most 16 numbers.
  std::vector<float> rows(2 * 24, 0.5f);
  rows[0] = 0.0f;
  test::write_bytes(bench().at("wide_rows.npy"), test::npy("<f4", "(2, 24)", test::bytes_of(rows)));
  const Json wide =
      report_of("run " + test::kExports + "autoencoder.onnx --data wide_rows.npy --as outputs");
  CHECK_FALSE(wide.contains("results"));
  CHECK(wide.at("results_left_out") == "a sample has 24 results: --output FILE writes them");
}

TEST_CASE("info knows the shape of each layer's output, and what is folded", "[tools]") {
  const Json floats = report_of("info " + kCnn).at("layers");
  CHECK(floats[0].at("output").size() == 3);
  write_shapes("shapes.npy");
  ends_with(0, "quantize " + kShapes + ".onnx --data shapes.npy --network shapes.net");
  const Json prepared = report_of("info shapes.net").at("layers");
  const auto count = [&](const Json& layers, const std::string& text) {
    return std::count_if(layers.begin(), layers.end(), [&](const Json& layer) {
      return layer.at("output") == text;
    });
  };
  CHECK(count(prepared, "folded") > 0);
  CHECK(count(prepared, "unknown") + count(floats, "folded") + count(floats, "unknown") == 0);
}

/// Data "qi.npy" of all codes of int8 for a model with images [2, 12, 12], and "qf.npy" with the
/// real values that they mean.
void write_codes(const std::string& model) {
  const Json input = report_of("info " + model).at("inputs")[0];
  const auto low = input.at("low").get<double>();
  const double scale = (input.at("high").get<double>() - low) / 255.0;
  std::vector<uint8_t> codes;
  std::vector<float> reals;
  for (int i = 0; i < 2 * 2 * 12 * 12; ++i) {
    codes.push_back(static_cast<uint8_t>((i * 37) % 256));  // q + 256 of a negative q
    const int q = codes.back() < 128 ? codes.back() : codes.back() - 256;
    reals.push_back(static_cast<float>(low + scale * (q + 128)));
  }
  const std::string shape = "(2, 2, 12, 12)";
  test::write_bytes(bench().at("qi.npy"), test::npy("|i1", shape, codes));
  test::write_bytes(bench().at("qf.npy"), test::npy("<f4", shape, test::bytes_of(reals)));
}

/// Checks that a model takes the values of "qi.npy" as codes.
void check_codes(const std::string& model) {
  const std::string call = "run " + model + " --as integers --output q.npy --data ";
  ends_with(0, call + "qf.npy");
  const std::vector<int32_t> expected = read_npy(bench().at("q.npy")).labels();
  ends_with(0, call + "qi.npy");
  INFO(model);
  CHECK(read_npy(bench().at("q.npy")).labels() == expected);
}

TEST_CASE("int8 values are the codes of a quantized .onnx file whose input is int8", "[tools]") {
  const std::string file = kQuantized + "ort_images_int8.onnx";
  write_codes(file);
  check_codes(file);
  // A file that takes uint8 has no such codes.
  const Ended refused = ends_with(1, "run " + kQuantized + "ort_images_qdq.onnx --data qi.npy");
  CHECK_THAT(refused.err, ContainsSubstring("has no codes of int8: save the real values"));
}

TEST_CASE("int8 values stay codes in what is made of a file whose input is int8", "[tools]") {
  const std::string file = kQuantized + "ort_images_int8.onnx";
  write_codes(file);
  Network net = quant::import_quantized_onnx(file).network;
  const std::string plain = "plain.safetensors";
  quant::convert(net, net.example()).save(bench().at(plain));  // by a program that says nothing
  ends_with(0, "export " + file + " --to onnx-exact --output made.onnx");
  test::write_bytes(bench().at("ql.npy"),
                    test::npy("<i4", "(2,)", test::bytes_of(std::vector<int32_t>{0, 1})));
  ends_with(0,
            "finetune " + file +
                " --data qf.npy --target ql.npy --steps 1 --output tuned.safetensors "
                "--network tuned.net");
  for (const std::string model : {"made.onnx", "tuned.safetensors", "tuned.net"}) {
    check_codes(model);
    ends_with(0, "compare " + file + ' ' + model + " --data qi.npy");
  }
  const Json same = report_of("compare " + file + " made.onnx --data qi.npy");
  for (const Json& layer : same.at("layers")) CHECK(layer.at("signal_to_noise").is_null());
  const Ended refused = ends_with(1, "compare " + file + ' ' + plain + " --data qi.npy");
  CHECK_THAT(refused.err,
             ContainsSubstring("holds int8, which are codes of " + file + " and numbers for " +
                               plain + ": save the real values as floats"));
  ends_with(1, "compare " + plain + ' ' + file + " --data qi.npy");
  ends_with(0, "compare " + plain + ' ' + file + " --data qf.npy");
}

TEST_CASE("the type of an input's codes may stand in output_dtype", "[tools]") {
  onnx::Model model = onnx::read_model(kQuantized + "ort_images_int8.onnx");
  const std::string input = model.graph.inputs[0].name;
  std::string codes;
  for (onnx::Node& node : model.graph.nodes) {
    if (node.inputs[0] == input) codes = node.outputs[0];
    if (node.inputs[0] != input && node.inputs[0] != codes) continue;
    REQUIRE(node.inputs.size() == 3);
    node.inputs.pop_back();
    if (node.inputs[0] == input) node.attributes.push_back({"output_dtype", int64_t{3}});
  }
  REQUIRE_FALSE(codes.empty());
  onnx::write_model(bench().at("dtype.onnx"), model);
  write_codes("dtype.onnx");
  check_codes("dtype.onnx");
}

TEST_CASE("what a quantized .onnx file leaves open is chosen from data", "[tools]") {
  onnx::Model model = onnx::read_model(kShapes + "_qdq.onnx");
  // Without the quantizer of one result, whose readers read it as it is.
  const std::string lost = "/3/branch/4/BatchNormalization_output_0";
  std::erase_if(model.graph.nodes, [&](const onnx::Node& node) {
    return node.outputs[0].rfind(lost + "_QuantizeLinear", 0) == 0 ||
           node.outputs[0].rfind(lost + "_DequantizeLinear", 0) == 0;
  });
  for (onnx::Node& node : model.graph.nodes) {
    for (std::string& input : node.inputs) {
      if (input == lost + "_DequantizeLinear_Output") input = lost;
    }
  }
  onnx::write_model(bench().at("open.onnx"), model);
  write_shapes("open.npy");
  const std::string data = "quantize open.onnx --data open.npy --output open.safetensors";
  CHECK_THAT(ends_with(1, data).err,
             ContainsSubstring("--onnx-anew chooses this anew, from the data of quantize"));
  CHECK_THAT(ends_with(2, data + " --onnx-anew --bits 4").err,
             ContainsSubstring("[--bits] and the other flags of the configuration are for networks "
                               "of floats; open.onnx has bits"));
  CHECK(report_of(data + " --onnx-anew").at("signal_to_noise").get<double>() > 20.0);
  const Json same = report_of("compare " + kShapes + "_qdq.onnx open.safetensors --data open.npy");
  for (const Json& layer : same.at("layers"))
    CHECK((layer.at("signal_to_noise").is_null() || layer.at("signal_to_noise") > 20.0));
}

}  // namespace quantrain
