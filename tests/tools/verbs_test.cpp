#include <nlohmann/json.hpp>
#include <string>

#include "framework/core/random.hpp"
#include "framework/data/npy.hpp"
#include "framework/integer/integer_model.hpp"
#include "layers/init.hpp"
#include "layers/layers.hpp"
#include "layers/network/trace.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/tools/program.hpp"

namespace quantrain {
namespace {

using Json = nlohmann::json;
using test::bench;
using test::Ended;

struct Kind {
  const char* name;
  std::string path;
  bool is_float;    ///< a network of floats
  bool has_layers;  ///< floats or prepared
  std::string data;
};

std::vector<Kind> kinds() {
  return {{"onnx", test::kExports + "ds_cnn.onnx", true, true, "big"},
          {"float", "float.safetensors", true, true, "big"},
          {"prepared", "prepared.safetensors", false, true, "big"},
          {"integer", "integer.safetensors", false, false, "big"},
          {"tflite", test::kTflite, false, false, "small"}};
}

/// D of every kind that holds images.
std::vector<std::string> data_of(const std::string& folder) {
  const std::string labels = " --target " + folder + "/labels.npy";
  return {folder + "/idx",
          folder + "/images.npy" + labels,
          folder + "/nchw.npy" + labels,
          folder + "/png",
          folder + "/images.bin" + labels};
}

Ended runs(const std::string& arguments, int status) {
  Ended ended = test::ends_with(status, arguments);
  INFO(arguments << '\n' << ended.err);
  CHECK(ended.err.empty() == (status == 0));
  return ended;
}

Json json_of(const std::string& arguments) {
  const Ended ended = runs(arguments + " --json", 0);
  INFO(arguments);
  REQUIRE_NOTHROW(Json::parse(ended.out));
  return Json::parse(ended.out);
}

}  // namespace

TEST_CASE("info, plan and bench work on every kind of model", "[tools]") {
  for (const Kind& kind : kinds()) {
    INFO(kind.name);
    const Json info = json_of("info " + kind.path);
    CHECK(info.at("ram_bytes").get<int64_t>() > 0);
    CHECK(info.at("flash_bytes").get<int64_t>() > 0);
    CHECK(info.at("layers").size() > 3);
    CHECK(info.at("inputs")[0].at("shape").size() == 3);
    const Json plan = json_of("plan " + kind.path);
    CHECK(plan.at("ram_bytes") == info.at("ram_bytes"));
    if (kind.has_layers) CHECK(plan.at("layers").size() > 3);
    const Json times = json_of("bench " + kind.path + " --batch 1,2 --threads 1,2 --calls 1");
    CHECK(times.at("calls").size() == 4);
    CHECK_FALSE(times.at("layers").empty());
  }
}

TEST_CASE("run, quantize, finetune and diagnose work on every kind of data", "[tools]") {
  for (const Kind& kind : kinds()) {
    for (const std::string& data : data_of(kind.data)) {
      const std::string both = kind.path + " --data " + data;
      const Json result = json_of("run " + both + " --output classes.csv");
      CHECK(result.at("samples") == test::Bench::kSamples);
      CHECK(result.at("accuracy").get<double>() >= 0.0);
      const std::string table = test::text_of(bench().at("classes.csv"));
      CHECK(std::count(table.begin(), table.end(), '\n') == test::Bench::kSamples + 1);
    }
    // The readers are the same for all verbs: the others see one kind of data.
    const std::string both = kind.path + " --data " + data_of(kind.data)[3];
    runs("quantize " + both, kind.is_float ? 0 : 1);
    runs("diagnose " + both + " --samples 8", kind.has_layers ? 0 : 1);
    runs("finetune " + both + " --steps 1 --frozen-epochs 0", kind.has_layers ? 0 : 1);
  }
}

TEST_CASE("run gives the outputs that PyTorch gave, from either layout", "[tools]") {
  const Json all = Json::parse(test::text_of(test::kExports + "networks.json"));
  const auto x = all.at("ds_cnn").at("x").at("values").get<std::vector<float>>();
  const auto y = all.at("ds_cnn").at("y").at("values").get<std::vector<float>>();
  // One channel: the values are the same in both layouts.
  for (const std::string shape : {"(2, 13, 10, 1)", "(2, 1, 13, 10)"}) {
    test::write_bytes(bench().at("x.npy"), test::npy("<f4", shape, test::bytes_of(x)));
    runs("run " + test::kExports + "ds_cnn.onnx --data x.npy --as outputs --output y.npy", 0);
    const std::vector<float> outputs = read_npy(bench().at("y.npy")).floats();
    REQUIRE(outputs.size() == y.size());
    for (size_t i = 0; i < y.size(); ++i)
      CHECK_THAT(outputs[i], Catch::Matchers::WithinAbs(static_cast<double>(y[i]), 1e-4));
  }
}

TEST_CASE("run gives the engine's integers, of an integer model and its network", "[tools]") {
  const auto model = IntegerModel::load(bench().at("integer.safetensors"));
  const std::vector<uint8_t> codes = test::read_bytes(bench().at("big/images.bin"));
  std::vector<int32_t> expected(static_cast<size_t>(test::Bench::kSamples * model.output_size()));
  model.run_codes(codes, std::span<int32_t>(expected));
  for (const std::string name : {"integer", "prepared"}) {
    for (const std::string data : {"big/images.bin", "big/nchw.npy"}) {
      runs("run " + name + ".safetensors --data " + data + " --as integers --output i.npy", 0);
      CHECK(read_npy(bench().at("i.npy")).labels() == expected);
    }
  }
}

TEST_CASE("compare finds no difference between a prepared network and its integers", "[tools]") {
  const Json same = json_of("compare prepared.safetensors integer.safetensors --data big/idx");
  CHECK(same.at("layers").size() > 3);
  for (const Json& layer : same.at("layers")) {
    INFO(layer);
    CHECK((layer.at("codes_that_differ").is_null() || layer.at("codes_that_differ") == 0));
  }
  CHECK(same.at("other_classes") == 0);
}

TEST_CASE("compare takes any two kinds of models", "[tools]") {
  const std::vector<Kind> all = kinds();
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < all.size(); ++j) {
      // In both orders only floats with integers: what either gets may depend on the other.
      if (j > i && all[i].is_float == all[j].is_float) continue;
      const bool fit = all[i].data == all[j].data;
      const std::string call = "compare " + all[i].path + ' ' + all[j].path + " --data " +
                               all[i].data + "/images.bin --samples 4";
      if (!fit) {
        runs(call, 1);
        continue;
      }
      const Json result = json_of(call);
      const bool deployed_alike = !all[i].is_float && !all[j].is_float;
      // Layers before the outputs are compared, too: all kinds name them alike.
      CHECK(result.at("layers").size() > 3);
      for (const Json& layer : result.at("layers")) {
        INFO(call << '\n' << layer);
        const Json& ratio = layer.at("signal_to_noise");
        if (deployed_alike || all[i].is_float == all[j].is_float) CHECK(ratio.is_null());
        if (!ratio.is_null()) CHECK(ratio.get<double>() > 20.0);
      }
    }
  }
}

TEST_CASE("a table is read by its columns, and words are classes", "[tools]") {
  const std::string call = "run " + test::kExports + "mlp.onnx --data table.csv";
  CHECK(json_of(call + " --target kind").at("accuracy").get<double>() >= 0.0);
  CHECK(json_of(call + " --columns a,b,c,d,e,f,g,h,i").at("samples") == test::Bench::kSamples);
  runs("quantize " + test::kExports +
           "mlp.onnx --data table.csv --target kind --output mlp.safetensors --network mlp.net",
       0);
  // The columns and classes are in the files now.
  CHECK(json_of("info mlp.safetensors").at("classes") == Json({"left, up", "middle", "right"}));
  CHECK(json_of("run mlp.safetensors --data table.csv").at("samples") == test::Bench::kSamples);
  CHECK(json_of("run mlp.net --data table.csv --target kind").contains("accuracy"));
  // The model keeps its columns: others would be mistaken for them.
  const Ended other = runs("run mlp.safetensors --data table.csv --columns b,a,c,d,e,f,g,h,i", 1);
  CHECK_THAT(other.err,
             test::ContainsSubstring("was made for the columns a, b, c, d, e, f, g, h, i"));
  runs("run mlp.safetensors --data table.csv --columns a,b,c,d,e,f,g,h,i", 0);
}

TEST_CASE("flat rows of an array are in the layout that is said", "[tools]") {
  const std::string call =
      "run " + test::kExports + "resnet.onnx --output u.npy --as outputs --data ";
  const Json info = json_of("info " + test::kExports + "resnet.onnx");
  const auto shape = info.at("inputs")[0].at("shape").get<std::vector<int64_t>>();
  const int64_t n = shape[0] * shape[1] * shape[2];
  std::vector<float> x;
  for (int64_t i = 0; i < n; ++i) x.push_back(static_cast<float>(i) / static_cast<float>(n));
  const auto text = [](int64_t extent) { return std::to_string(extent); };
  const std::string planes = text(shape[2]) + ", " + text(shape[0]) + ", " + text(shape[1]);
  test::write_bytes(bench().at("planes.npy"),
                    test::npy("<f4", "(1, " + planes + ")", test::bytes_of(x)));
  test::write_bytes(bench().at("flat.npy"),
                    test::npy("<f4", "(1, " + text(n) + ")", test::bytes_of(x)));
  runs(call + "planes.npy --layout nchw", 0);
  const std::vector<float> expected = read_npy(bench().at("u.npy")).floats();
  runs(call + "flat.npy --layout nchw", 0);
  CHECK(read_npy(bench().at("u.npy")).floats() == expected);
  runs(call + "flat.npy", 0);
  CHECK(read_npy(bench().at("u.npy")).floats() != expected);
}

TEST_CASE("of an IDX folder, --test is its test part, whatever --split says", "[tools]") {
  const std::vector<uint8_t> images(4 * 130, 7);
  const std::vector<uint8_t> labels(4, 1);
  std::filesystem::create_directories(bench().at("parts"));
  for (const std::string part : {"train", "t10k"}) {
    const uint32_t n = part == "train" ? 4 : 2;
    test::write_bytes(bench().at("parts/" + part + "-images-idx3-ubyte"),
                      test::idx({n, 13, 10}, {images.begin(), images.begin() + n * 130}));
    test::write_bytes(bench().at("parts/" + part + "-labels-idx1-ubyte"),
                      test::idx({n}, {labels.begin(), labels.begin() + n}));
  }
  const std::string call = "quantize float.safetensors --data parts --split train --test parts";
  CHECK(json_of(call).at("samples") == 2);
}

TEST_CASE("an autoencoder is judged by its own input, and numbers by columns", "[tools]") {
  std::vector<float> rows;
  Random random(3);
  for (int i = 0; i < 24 * 24; ++i) rows.push_back(random.uniform(-1.0f, 1.0f));
  test::write_bytes(bench().at("rows.npy"), test::npy("<f4", "(24, 24)", test::bytes_of(rows)));
  const std::string both = test::kExports + "autoencoder.onnx --data rows.npy --target input";
  CHECK(json_of("run " + both + " --output y.npy").at("mse").get<double>() > 0.0);
  CHECK(read_npy(bench().at("y.npy")).shape == Shape{24, 24});
  const Json result = json_of("quantize " + both + " --output auto.safetensors");
  CHECK_THAT(result.at("mse_integer").get<double>(),
             Catch::Matchers::WithinRel(result.at("mse_float").get<double>(), 0.05));
  runs("finetune " + both + " --steps 2", 0);
  // What is made of it knows that its target is its input: run shows the error, and no classes.
  runs("quantize " + both + " --network auto.net", 0);
  for (const std::string model : {"auto.safetensors", "auto.net"}) {
    const Json report = json_of("run " + model + " --data rows.npy");
    CHECK(report.at("mse") == result.at("mse_integer"));
    CHECK(report.at("results_left_out") == "a sample has 24 results: --output FILE writes them");
  }
  CHECK_FALSE(
      json_of("run " + test::kExports + "autoencoder.onnx --data rows.npy").contains("mse"));
  // Classes of the samples change nothing about it; another target does.
  manual_seed(5);
  Sequential pixels{Flatten{}, Linear{130, 130}};
  save_network(trace(pixels, Tensor::zeros({1, 13, 10, 1})), bench().at("pixels.net"));
  const std::string idx = " --data big/idx";
  runs("quantize pixels.net" + idx + " --target input --network pixels_auto.net", 0);
  CHECK(json_of("run pixels_auto.net" + idx).contains("mse"));
  runs(
      "finetune pixels_auto.net --steps 1 --frozen-epochs 0 --network labels.net "
      "--data big/images.npy --target big/labels.npy",
      0);
  CHECK_FALSE(json_of("run labels.net" + idx).contains("mse"));
  CHECK(json_of("run auto.safetensors --data rows.npy --as classes").at("results").size() == 24);
  // The integers' target is what the network sees, too.
  const Json normalized = json_of("quantize " + both + " --mean 0.5 --deviation 0.25");
  CHECK_THAT(normalized.at("mse_integer").get<double>(),
             Catch::Matchers::WithinRel(normalized.at("mse_float").get<double>(), 0.05));
  // One column for each of the outputs.
  runs("run " + test::kExports +
           "mlp.onnx --data table.csv --target a,b,c --columns a,b,c,d,e,f,g,h,i",
       0);
}

TEST_CASE("a part that has no integer form can be left out", "[tools]") {
  const std::string lenet = test::kExports + "lenet.onnx";
  const Ended ended = runs("plan " + lenet, 1);
  CHECK_THAT(ended.err, test::ContainsSubstring("log_softmax has no integer form"));
  CHECK_THAT(ended.err, test::ContainsSubstring("--onnx-outputs /fc2/Gemm_output_0"));
  CHECK(json_of("plan " + lenet + " --onnx-outputs " + "/fc2/Gemm_output_0").at("convertible") ==
        true);
}

TEST_CASE("mean and deviation are kept in what quantize writes", "[tools]") {
  const std::string means = " --mean 0.25 --deviation 0.5";
  runs("quantize float.safetensors --data big/png --output m.safetensors --network m.net" + means,
       0);
  const Json info = json_of("info m.safetensors");
  CHECK_THAT(info.at("inputs")[0].at("low").get<double>(), Catch::Matchers::WithinAbs(-0.5, 0.01));
  CHECK_THAT(info.at("inputs")[0].at("high").get<double>(), Catch::Matchers::WithinAbs(1.5, 0.01));
  // The integers agree with the network of floats only if both see the same normalization.
  const Json result = json_of("compare float.safetensors m.safetensors --data big/png" + means);
  for (const Json& layer : result.at("layers"))
    CHECK(layer.at("signal_to_noise").get<double>() > 20.0);
  CHECK(json_of("compare float.safetensors m.safetensors --data big/png") == result);
  CHECK(json_of("compare m.net m.safetensors --data big/png").at("other_classes") == 0);
}

TEST_CASE("export writes C that computes the engine's integers", "[tools]") {
  const std::string to = " --to c99 --output . ";
  runs("export integer.safetensors --name a --test 5 --data big/png" + to, 0);
  runs("export prepared.safetensors --name b --test 5" + to, 0);
  runs("export " + test::kTflite + " --name c --test 5" + to, 0);
  for (const std::string name : {"a", "b", "c"}) {
    const Ended ended =
        bench().run("--version", "cc -std=c99 -O1 " + name + "_test.c -o t && ./t && ");
    INFO(ended.err);
    CHECK_THAT(ended.out, test::ContainsSubstring("5 of 5 equal"));
  }
}

TEST_CASE("inputs of 1 bit get random codes that they take", "[tools]") {
  IntegerModel(integer::test::binary(1)).save(bench().at("bits.safetensors"));
  runs("export bits.safetensors --to c99 --name bits --test 5 --output .", 0);
  const Ended ended = bench().run("--version", "cc -std=c99 -O1 bits_test.c -o t && ./t && ");
  INFO(ended.err);
  CHECK_THAT(ended.out, test::ContainsSubstring("5 of 5 equal"));
  runs("export bits.safetensors --to onnx-qdq --output bits.onnx", 0);
  CHECK_FALSE(json_of("bench bits.safetensors --batch 1 --calls 1").at("layers").empty());
}

TEST_CASE("bench keeps the weights of an integer model fast or small, as info says", "[tools]") {
  integer::test::Builder b;
  const integer::test::RandomProduct p(
      {.outputs = 64, .length = 64, .x = integer::test::kX, .weight_bits = 2}, 1);
  const int x = b.input({64}, integer::test::kX);
  b.program.outputs = {
      b.accumulators("fc", integer::QuantizedLinear{1, 64, 64, p.product}, {x}, {64}, p.scale)};
  IntegerModel(b.program).save(bench().at("two_bits.safetensors"));
  const Json info = json_of("info two_bits.safetensors");
  const Json fast = json_of("bench two_bits.safetensors --batch 1 --calls 1");
  const Json small = json_of("bench two_bits.safetensors --batch 1 --calls 1 --keep small");
  CHECK(fast.at("kept_bytes") == info.at("kept_bytes_fast"));
  CHECK(small.at("kept_bytes") == info.at("kept_bytes_small"));
  // 2 bits for each of 64 * 64 weights, and not a byte or two.
  CHECK(small.at("kept_bytes").get<int64_t>() + 64 * 64 * 3 / 4 <=
        fast.at("kept_bytes").get<int64_t>());
}

TEST_CASE("an exported .onnx file is the same integer model", "[tools]") {
  const Json before = json_of("info integer.safetensors");
  for (const std::string form : {"exact", "qdq"}) {
    const std::string file = form + ".onnx";
    runs("export integer.safetensors --to onnx-" + form + " --output " + file, 0);
    Json after = json_of("info " + file);
    CHECK(after.at("layers") == before.at("layers"));
    const Json same = json_of("compare prepared.safetensors " + file + " --data big/idx");
    for (const Json& layer : same.at("layers")) CHECK(layer.at("signal_to_noise").is_null());
  }
  const Json layers =
      json_of("export prepared.safetensors --to onnx-qdq --output x.onnx --data big/png")
          .at("layers");
  CHECK_FALSE(layers.empty());
}

TEST_CASE("a quantized .onnx file is a prepared network with the file's integers", "[tools]") {
  const std::string folder = QUANTRAIN_TEST_DATA "/quantized/";
  const Json all = Json::parse(test::text_of(folder + "codes.json"));
  for (const std::string name :
       {"ort_images_qdq", "ort_images_qoperator", "ort_images_int8", "torch_fx", "qcdq", "qonnx"}) {
    INFO(name);
    const std::string file = folder + name + ".onnx";
    CHECK(json_of("info " + file).at("model") == "a prepared network (ONNX)");
    std::string shape;
    for (const Json& extent : all.at(name).at("x").at("shape")) shape += extent.dump() + ", ";
    const auto x = all.at(name).at("x").at("values").get<std::vector<float>>();
    const auto y = all.at(name).at("y").at("values").get<std::vector<double>>();
    test::write_bytes(bench().at("qx.npy"), test::npy("<f4", '(' + shape + ')', test::bytes_of(x)));
    runs("run " + file + " --data qx.npy --as outputs --output qy.npy", 0);
    const std::vector<float> outputs = read_npy(bench().at("qy.npy")).floats();
    REQUIRE(outputs.size() == y.size());
    double signal = 0.0;
    double noise = 0.0;
    for (size_t i = 0; i < y.size(); ++i) {
      const double change = static_cast<double>(outputs[i]) - y[i];
      signal += y[i] * y[i];
      noise += change * change;
    }
    CHECK(noise < 1e-3 * signal);  // a few codes differ by 1
    runs("export " + file + " --to c99 --name q --test 2 --data qx.npy", 0);
  }
  CHECK_THAT(runs("quantize " + folder + "qcdq.onnx --data qx.npy", 1).err,
             test::ContainsSubstring("quantrain finetune"));
}

TEST_CASE("a network of floats is the same after a way through ONNX", "[tools]") {
  runs("export float.safetensors --to onnx-float --output again.onnx", 0);
  const Json same = json_of("compare float.safetensors again.onnx --data big/idx");
  CHECK(same.at("layers").size() > 3);
  for (const Json& layer : same.at("layers")) {
    const Json& ratio = layer.at("signal_to_noise");
    CHECK((ratio.is_null() || ratio.get<double>() > 100.0));
  }
  CHECK_THAT(runs("export prepared.safetensors --to onnx-float --output x.onnx", 1).err,
             test::ContainsSubstring("expected a network of floats"));
}

TEST_CASE("help, completions and the manual page name every verb and flag", "[tools]") {
  const std::string help = runs("--help", 0).out;
  const std::string man = runs("man", 0).out;
  std::vector<std::string> scripts;
  for (const std::string shell : {"bash", "zsh", "fish"})
    scripts.push_back(runs("completion " + shell, 0).out);
  int64_t flags = 0;
  for (const std::string verb : {"info",
                                 "plan",
                                 "quantize",
                                 "finetune",
                                 "diagnose",
                                 "run",
                                 "compare",
                                 "export",
                                 "bench",
                                 "completion",
                                 "man"}) {
    CHECK_THAT(help, test::ContainsSubstring("\n  " + verb + " "));
    const std::string own = runs(verb + " --help", 0).out;
    CHECK_THAT(own, test::ContainsSubstring("Example:\n  quantrain " + verb));
    // Every verb that reads a model takes the same options for .onnx files.
    const bool reads = verb != "completion" && verb != "man";
    for (const std::string flag : {"shape", "outputs", "range", "anew"})
      CHECK((own.find("--onnx-" + flag + ' ') != std::string::npos) == reads);
    for (size_t at = own.find("\n  --"); at != std::string::npos; at = own.find("\n  --", at + 1)) {
      const std::string flag = own.substr(at + 5, own.find_first_of(" \n", at + 5) - at - 5);
      INFO(verb << " --" << flag);
      ++flags;
      std::string escaped = flag;
      for (size_t i = escaped.find('-'); i != std::string::npos; i = escaped.find('-', i + 2))
        escaped.insert(i, "\\");
      CHECK_THAT(man, test::ContainsSubstring("\\-\\-" + escaped));
      CHECK_THAT(scripts[0], test::ContainsSubstring("--" + flag));
      CHECK_THAT(scripts[1], test::ContainsSubstring("--" + flag + "["));
      CHECK_THAT(scripts[2], test::ContainsSubstring("-l " + flag + " "));
    }
  }
  CHECK(flags > 60);
}

TEST_CASE("bash completes verbs, flags and values", "[tools]") {
  runs("completion bash > completion", 0);
  const auto complete = [&](const std::string& words, const std::string& expected) {
    const Ended ended = bench().run(
        "--version",
        "bash -c 'source ./completion; COMP_WORDS=(" + words +
            "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _quantrain; echo \"${COMPREPLY[*]}\"' && ");
    INFO(words << '\n' << ended.err);
    CHECK(ended.out.substr(0, ended.out.find('\n')) == expected);
  };
  complete("quantrain fi", "finetune");
  complete("quantrain export --t", "--to --test --target --threads");
  complete("quantrain export --to onnx", "onnx-exact onnx-qdq onnx-float");
  complete("quantrain completion z", "zsh");
}

}  // namespace quantrain
