#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "framework/io/safetensors.hpp"
#include "tests/tools/program.hpp"

namespace quantrain {
namespace {

using test::bench;
using test::Ended;

struct Wrong {
  std::string call;
  int status;
  std::string text;  ///< in the one line on standard error
};

const std::string kOnnx = test::kExports + "ds_cnn.onnx";

std::vector<Wrong> wrong_calls() {
  const std::string idx = " --data big/idx";
  std::vector<Wrong> all = {
      // Verbs and flags.
      {"", 2, "no verb"},
      {"nonsense", 2, "no verb \"nonsense\": there are info, plan"},
      {"Info " + kOnnx, 2, "no verb \"Info\""},
      {"qauntize " + kOnnx, 2, "did you mean quantize?"},
      {"run " + kOnnx + " --dta big/idx",
       2,
       "there is no --dta: did you mean --data?; see quantrain run"},
      {"--nonsense", 2, "--nonsense"},
      {"-j", 2, "-j"},
      {"info", 2, "MODEL is required"},
      {"info " + kOnnx + " --nonsense", 2, "--nonsense"},
      {"info " + kOnnx + " another", 2, "another"},
      {"info " + kOnnx + " --threads", 2, "--threads"},
      {"info " + kOnnx + " --threads many", 2, "\"many\" is no whole number from 0 to 1024"},
      {"info " + kOnnx + " --threads -1", 2, "\"-1\" is no whole number"},
      {"quantize --print-config --weigth-bits 4",
       2,
       "there is no --weigth-bits: did you mean --weight-bits?; see quantrain quantize"},
      {"plan --weigth-bits=4 --print-config", 2, "there is no --weigth-bits"},
      {"plan " + kOnnx + " another --print-config", 2, "another"},
      {"completion", 2, "SHELL is required"},
      {"completion tcsh", 2, "\"tcsh\" is none of: bash, zsh, fish"},
      {"man page", 2, "page"},
      {"compare " + kOnnx, 2, "B is required"},
      {"run " + kOnnx, 2, "--data is required"},
      {"quantize " + kOnnx, 2, "--data is required"},
      {"export integer.safetensors", 2, "--to is required"},
      {"export integer.safetensors --to c", 2, "\"c\" is none of: c99, onnx-exact"},
      {"plan " + kOnnx + " --bits 0", 2, "\"0\" is no whole number from 1 to 8"},
      {"plan " + kOnnx + " --bits 16", 2, "1 to 8"},
      {"plan " + kOnnx + " --bits 4.5", 2, "1 to 8"},
      {"plan " + kOnnx + " --observer best", 2, "\"best\" is none of: min_max"},
      {"plan " + kOnnx + " --layer Conv2d", 2, "write a layer and its bits"},
      {"plan " + kOnnx + " --layer Conv2d=9", 2, "write a layer and its bits"},
      {"plan " + kOnnx + " --layer =4", 2, "write a layer and its bits"},
      {"plan " + kOnnx + " --layer nothing=4", 1, "nothing"},
      {"plan " + kOnnx + " --ram much", 2, "\"much\" is no number of bytes"},
      {"plan " + kOnnx + " --ram 10x", 2, "no number of bytes"},
      {"plan " + kOnnx + " --flash -1", 2, "no number of bytes"},
      {"plan " + kOnnx + " --config nowhere.json", 1, "nowhere.json"},
      {"plan " + kOnnx + " --config table.csv", 1, "JSON"},
      {"plan " + kOnnx + " --config table.csv --bits 4", 2, "leave the other flags away"},
      {"plan integer.safetensors --bits 4", 2, "networks of floats"},
      {"plan prepared.safetensors --bits 4", 2, "networks of floats"},
      {"bench " + kOnnx + " --batch 0", 2, "\"0\" is no whole number from 1 to 256"},
      {"bench " + kOnnx + " --batch 1,x", 2, "\"x\" is no whole number"},
      {"bench " + kOnnx + " --threads 0", 2, "\"0\" is no whole number"},
      {"bench " + kOnnx + " --calls 0", 2, "--calls"},
      {"bench " + kOnnx + " --keep small", 2, "[--keep] is for integer models"},
      {"bench integer.safetensors --keep tiny", 2, "\"tiny\" is none of: fast, small"},
      {"info " + kOnnx + " --onnx-shape image", 2, "write input=1,3,224,224"},
      {"run " + kOnnx + idx + " --onnx-outputs nothing", 1, "nothing"},
      {"info integer.safetensors --onnx-outputs x", 2, "is only for .onnx files"},
      {"info " + test::kTflite + " --onnx-shape x=1", 2, "is only for .onnx files"},
      // Models.
      {"info nowhere.onnx", 1, "nowhere.onnx"},
      {"info 'no  where.onnx'", 1, "no  where.onnx"},
      {"info nowhere.tflite", 1, "nowhere.tflite"},
      {"info .", 1, "is not a regular file"},
      {"info table.csv", 1, "is no model: expected .onnx"},
      {"info network.pt", 1, "torch.onnx.export"},
      {"info network.h5", 1, "TensorFlow"},
      {"info empty", 1, "is no model"},
      {"info broken.onnx", 1, "broken.onnx"},
      {"info broken.tflite", 1, "broken.tflite"},
      {"info broken.safetensors", 1, "broken.safetensors"},
      {"info weights.safetensors", 1, "holds tensors, but no network"},
      {"quantize integer.safetensors" + idx, 1, "expected a network of floats"},
      {"quantize prepared.safetensors" + idx, 1, "quantrain finetune"},
      {"finetune integer.safetensors" + idx, 1, "holds integers"},
      {"diagnose integer.safetensors" + idx, 1, "holds integers only"},
      {"finetune prepared.safetensors --bits 4" + idx,
       2,
       "[--bits] and the other flags of the configuration are for networks of floats; "
       "prepared.safetensors is prepared already"},
      {"diagnose prepared.safetensors --bits 4" + idx, 2, "is prepared already"},
      {"export float.safetensors --to c99", 1, "quantrain quantize"},
      // Data.
      {"run " + kOnnx + " --data nowhere", 1, "nowhere"},
      {"run " + kOnnx + " --data nowhere.npy", 1, "nowhere.npy"},
      {"run " + kOnnx + " --data empty", 1, "raw bytes, named .bin or .raw"},
      {"run " + kOnnx + " --data photo.jpg", 1, "a folder of IDX or .png files, .npy, .csv"},
      {"run " + kOnnx + " --data empty.bin", 1, "no whole samples [13, 10, 1] of 130 bytes"},
      {"run " + kOnnx + " --data small/images.bin", 1, "no whole samples [13, 10, 1]"},
      {"run " + kOnnx + " --data small/idx", 1, "samples [8, 8], the model takes [13, 10, 1]"},
      {"run " + kOnnx + " --data small/images.npy",
       1,
       "samples [8, 8], the model takes [13, 10, 1]"},
      {"run " + kOnnx + " --data small/nchw.npy",
       1,
       "samples [1, 8, 8], the model takes [13, 10, 1]"},
      {"run " + kOnnx + " --data small/png", 1, "[8, 8, 1], the model takes [13, 10, 1]"},
      {"run " + kOnnx + " --data table.csv --target kind", 1, "the model takes [13, 10, 1]"},
      {"run " + test::kTflite + idx, 1, "samples [13, 10], the model takes [8, 8, 1]"},
      {"run " + test::kExports + "mlp.onnx --data table.csv", 1, "\"left, up\""},
      {"run " + test::kExports + "mlp.onnx --data table.csv --columns a,b",
       1,
       "rows [2] (a, b), the model takes [9]"},
      {"run " + test::kExports + "mlp.onnx --data table.csv --columns z", 1, "\"z\""},
      {"run " + test::kExports + "mlp.onnx --data table.csv --target z", 1, "\"z\""},
      {"run " + kOnnx + " --data big", 1, ".png"},
      {"run " + kOnnx + idx + " --split both", 2, "\"both\" is none of: train, test"},
      {"run " + kOnnx + " --data big/png --split test", 2, "--split"},
      {"run " + kOnnx + " --data big/png --layout nchw", 2, "--layout"},
      {"run " + kOnnx + " --data big/nchw.npy --layout nhwc",
       1,
       "samples [1, 13, 10], the model takes"},
      {"run " + kOnnx + " --data big/png --columns a", 2, "--columns"},
      {"run " + kOnnx + idx + " --target big/labels.npy", 2, "are known already"},
      {"run " + kOnnx + " --data big/images.bin --target table.csv", 1, "save a .npy or an IDX"},
      {"run " + kOnnx + " --data big/images.bin --target nowhere", 1, "does not exist"},
      {"run " + kOnnx + " --data big/images.bin --target few.npy", 1, "2 targets for 24 samples"},
      {"run " + kOnnx + " --data big/images.bin --target wild.npy",
       1,
       "labels from 0 to 6, the model gives 6 classes"},
      {"run " + kOnnx + " --data big/images.bin --target hollow.npy", 1, "hold nothing"},
      {"run " + kOnnx + " --data hollow.npy --layout nchw", 1, "hold nothing"},
      {"run " + kOnnx + idx + " --samples 0", 2, "--samples"},
      {"run " + kOnnx + idx + " --mean x", 2, "\"x\" is no number"},
      {"run " + kOnnx + idx + " --mean 0,0", 2, "has 2 numbers"},
      {"run " + kOnnx + idx + " --deviation 0", 2, "positive"},
      {"run " + kOnnx + idx + " --range 1", 2, "write the smaller and the larger"},
      {"run " + kOnnx + idx + " --range 1,0", 2, "write the smaller and the larger"},
      {"run integer.safetensors" + idx + " --mean 0.5 --deviation 0.5",
       1,
       "was made for normalization none"},
      {"run integer.safetensors" + idx + " --range 0,255", 1, "outside"},
      {"run integer.safetensors --data big/nchw.npy --range 0,255",
       1,
       "was made for values from 0 to 1"},
      {"run integer.safetensors --data big/far.npy", 1, "outside"},
      {"finetune " + kOnnx + " --data big/images.bin", 1, "neither labels nor targets"},
      {"compare " + kOnnx + ' ' + test::kTflite + idx, 1, "[13, 10, 1]"},
      {"compare " + kOnnx + " nowhere.onnx" + idx, 1, "nowhere.onnx"},
      {"diagnose " + test::kExports + "unet.onnx" + idx, 1, "the model takes [8, 12, 1]"},
      // Outputs, found before work: the data do not exist either.
      {"run " + kOnnx + " --data nowhere --output no/where.csv", 1, "no/where.csv"},
      {"run " + kOnnx + " --data nowhere --output out.txt", 2, "write to a .npy or a .csv file"},
      {"run " + kOnnx + " --data nowhere --output no/where.npy", 1, "no/where.npy"},
      {"quantize " + kOnnx + " --data nowhere --output no/where", 1, "no/where"},
      {"quantize " + kOnnx + " --data nowhere --network no/where", 1, "no/where"},
      {"quantize " + kOnnx + " --data nowhere --output big", 1, "big"},
      {"quantize " + kOnnx + " --data nowhere --output x --network ./x", 2, "name the same file"},
      {"quantize float.safetensors --data nowhere --output float.safetensors",
       2,
       "would write over its input"},
      {"quantize " + kOnnx +
           " --data big/images.bin --target big/labels.npy --output big/labels.npy",
       2,
       "would write over its input"},
      {"finetune " + kOnnx + idx +
           " --test big/images.bin --test-target big/labels.npy --network " + "big/labels.npy",
       2,
       "would write over its input"},
      {"diagnose " + kOnnx + " --data big/images.bin --target big/labels.npy --page big/labels.npy",
       2,
       "would write over its input"},
      {"finetune " + kOnnx + " --data nowhere --output no/where", 1, "no/where"},
      {"finetune " + kOnnx + " --data nowhere --log no/where", 1, "no/where"},
      {"finetune " + kOnnx + " --data nowhere --checkpoint table.csv/run", 1, "table.csv"},
      {"diagnose " + kOnnx + " --data nowhere --page no/where", 1, "no/where"},
      {"export integer.safetensors --to c99 --output nowhere", 1, "is no folder"},
      {"export integer.safetensors --to c99 --name a/b", 1, "a/b"},
      {"export integer.safetensors --to c99 --name 1a", 1, "1a"},
      {"export integer.safetensors --to c99 --test 0", 2, "--test"},
      {"export integer.safetensors --to c99" + idx, 2, "is for the samples of --test N"},
      {"export integer.safetensors --to onnx-exact --output x.onnx" + idx,
       2,
       "--data] is only for --to c99 and onnx-qdq"},
      {"export integer.safetensors --to onnx-exact", 2, "--output"},
      {"export integer.safetensors --to onnx-exact --output no/where.onnx", 1, "no/where.onnx"},
      {"export integer.safetensors --to onnx-exact --int4 --output x.onnx",
       2,
       "only for --to onnx-qdq"},
      {"export integer.safetensors --to onnx-qdq --test 3 --output x.onnx", 2, "only for --to c99"},
      {"export integer.safetensors --to c99 --onnx-input codes", 2, "only for --to onnx-exact"},
      {"export float.safetensors --to onnx-exact --output x.onnx", 1, "quantrain quantize"},
      {"run integer.safetensors --as integers --number 1" + idx, 2, "the model has 1 outputs"},
      {"finetune " + kOnnx + idx + " --resume", 2, "needs --checkpoint FOLDER"},
      {"finetune " + kOnnx + idx + " --checkpoint-every 2", 2, "needs --checkpoint FOLDER"},
      {"finetune " + kOnnx + idx + " --epochs 1 --frozen-epochs 2", 2, "is more than --epochs 1"},
      {"finetune " + kOnnx + idx + " --lr 0", 2, "\"0\" is no positive number"},
      // Budgets, before calibration or training.
      {"plan " + kOnnx + " --ram 100", 1, "bytes for its values, and may take 100"},
      {"plan integer.safetensors --flash 100", 1, "and may take 100"},
      {"quantize " + kOnnx + idx + " --flash 100 --output x.safetensors", 1, "and may take 100"},
      {"finetune " + kOnnx + idx + " --ram 1 --output x.safetensors", 1, "and may take 1"},
      {"export integer.safetensors --to c99 --ram 1", 1, "and may take 1"},
  };
  return all;
}

void write_wrong_files() {
  using namespace test;
  const Bench& place = bench();
  write_file(place.at("empty"), "");
  write_file(place.at("empty.bin"), "");
  write_file(place.at("photo.jpg"), "\xff\xd8 a photo");
  write_file(place.at("network.pt"), "PK.. not ours ..........");
  write_file(place.at("network.h5"), "HDF not ours ...........");
  write_file(place.at("broken.onnx"), "this is no protobuf at all");
  write_file(place.at("broken.tflite"), std::string("\x1c\0\0\0TFL3 and nothing else", 26));
  write_file(place.at("broken.safetensors"), std::string("\xff\xff\xff\xff\0\0\0\0{", 9));
  TensorFile tensors;
  const std::vector<float> one{1.0f};
  tensors.add<float>("weight", {1}, one);
  save_safetensors(place.at("weights.safetensors"), tensors);
  write_bytes(place.at("hollow.npy"), npy("<f4", "(24, 0, 3, 3)", {}));
  write_bytes(place.at("few.npy"), npy("<i4", "(2,)", bytes_of(std::vector<int32_t>{0, 1})));
  std::vector<int32_t> wild(24, 0);
  wild[3] = 6;
  write_bytes(place.at("wild.npy"), npy("<i4", "(24,)", bytes_of(wild)));
  const std::vector<float> far(13 * 10, 100.0f);
  write_bytes(place.at("big/far.npy"), npy("<f4", "(1, 13, 10)", bytes_of(far)));
}

/// Starts the program without a shell, which would ignore SIGINT for it.
pid_t start(const std::vector<std::string>& arguments) {
  const pid_t process = ::fork();
  if (process != 0) return process;
  if (::chdir(bench().at("").c_str()) != 0) ::_exit(99);
  for (const auto& [name, stream] : {std::pair{"out", 1}, std::pair{"err", 2}})
    ::dup2(::open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600), stream);
  std::vector<char*> argv{const_cast<char*>(QUANTRAIN_PROGRAM)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(QUANTRAIN_PROGRAM, argv.data());
  ::_exit(99);
}

}  // namespace

TEST_CASE("a wrong call gives one clear line and the right status, and leaves nothing", "[tools]") {
  write_wrong_files();
  const std::vector<Wrong> calls = wrong_calls();
  CHECK(calls.size() >= 100);
  const std::vector<std::string> before = bench().files();
  for (const Wrong& wrong : calls) {
    const Ended ended = bench().run(wrong.call);
    INFO("quantrain " << wrong.call << '\n' << ended.err);
    CHECK(ended.status == wrong.status);
    CHECK(std::count(ended.err.begin(), ended.err.end(), '\n') == 1);
    CHECK(ended.err.rfind("quantrain", 0) == 0);
    CHECK_THAT(ended.err, test::ContainsSubstring(wrong.text));
    CHECK(bench().files() == before);
  }
}

TEST_CASE("an interrupted run leaves nothing half written, and goes on", "[tools]") {
  const std::vector<std::string> call{"finetune",
                                      "float.safetensors",
                                      "--data",
                                      "big/idx",
                                      "--epochs",
                                      "100000",
                                      "--batch",
                                      "8",
                                      "--checkpoint",
                                      "run",
                                      "--output",
                                      "never.safetensors"};
  const pid_t process = start(call);
  const std::string folder = bench().at("run");
  // Until the first checkpoint is there.
  const auto has_checkpoint = [&] {
    return std::filesystem::exists(folder) && !std::filesystem::is_empty(folder);
  };
  for (int i = 0; i < 3000 && !has_checkpoint(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  REQUIRE(has_checkpoint());
  ::kill(process, SIGINT);
  int status = 0;
  REQUIRE(::waitpid(process, &status, 0) == process);
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
  CHECK(test::text_of(bench().at("err")) ==
        "quantrain: interrupted; the same call with --resume goes on from the last checkpoint\n");
  CHECK_FALSE(std::filesystem::exists(bench().at("never.safetensors")));
  // Another configuration does not go on from these checkpoints.
  const Ended other =
      bench().run("finetune float.safetensors --data big/idx --epochs 1 --checkpoint run --resume");
  CHECK(other.status == 1);
  CHECK_THAT(other.err, test::ContainsSubstring("the configuration \"--epochs 100000 ... "));
  CHECK_THAT(other.err, test::ContainsSubstring("this run has \"--epochs 1 ... --batch 64 ... "));
  const Ended again =
      bench().run("finetune float.safetensors --data big/idx --epochs 1 --checkpoint run");
  CHECK(again.status == 1);
  CHECK_THAT(again.err, test::ContainsSubstring("resume"));
}

TEST_CASE("a reader that has seen enough ends the program quietly", "[tools]") {
  for (const std::string verb : {"man", "completion bash", "info float.safetensors --json"}) {
    // The reader is gone before the program writes.
    const Ended ended = bench().run(verb, "sleep 0.1;", "| true");
    CHECK(ended.err.empty());
    const Ended ignored = bench().run(verb, "trap '' PIPE; sleep 0.1;", "| true");
    CHECK(ignored.err.empty());
  }
  const Ended full = bench().run("man", "", "> /dev/full");
  CHECK(full.status == 1);
  CHECK_THAT(full.err, test::ContainsSubstring("[standard output] cannot be written"));
}

}  // namespace quantrain
