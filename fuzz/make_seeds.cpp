// make_seeds FOLDER: writes the seeds of each target to FOLDER/<target>_fuzzer_seed_corpus. Some
// seeds are files as the library writes them. The others are composed here: small valid and invalid
// files, and files that once made a reader take too much memory or time.
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/integer/program_file.hpp"
#include "framework/io/safetensors.hpp"
#include "fuzz/network.hpp"
#include "fuzz/training.hpp"
#include "layers/network/network_file.hpp"
#include "layers/network/trace.hpp"
#include "layers/state.hpp"
#include "tests/framework/data/idx_files.hpp"
#include "tests/framework/data/npy_files.hpp"
#include "tests/framework/data/png_files.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/layers/onnx/onnx_files.hpp"
#include "tests/layers/onnx/onnx_networks.hpp"
#include "tests/quant/import/quantized_onnx_files.hpp"
#include "tests/quant/import/sample_files.hpp"

namespace quantrain::fuzz {
namespace {

class Seeds {
 public:
  Seeds(const std::string& folder, const char* target)
      : folder_(folder + '/' + target + "_fuzzer_seed_corpus") {
    std::filesystem::create_directories(folder_);
  }
  std::string operator/(const std::string& name) const { return folder_ + '/' + name; }

 private:
  std::string folder_;
};

void write(const std::string& path, const std::vector<uint8_t>& bytes) {
  const std::span<const uint8_t> parts[] = {bytes};
  write_file(path, parts);
}

/// A safetensors file with this header and no data.
std::vector<uint8_t> safetensors(const std::string& header) {
  const uint64_t size = header.size();
  std::vector<uint8_t> bytes(sizeof size + header.size());
  std::memcpy(bytes.data(), &size, sizeof size);
  std::memcpy(bytes.data() + sizeof size, header.data(), header.size());
  return bytes;
}

void integer_models(const Seeds& seeds) {
  using namespace integer::test;
  integer::save_program(seeds / "every_operation", every_operation());
  integer::save_program(seeds / "mlp", mlp());
  integer::save_program(seeds / "concat", wide_concat(40));
  for (uint64_t seed = 0; seed < 20; ++seed)
    integer::save_program(seeds / ("random" + std::to_string(seed)), random_program(seed));
  Builder b;
  const int pixel = b.input({1, 1, 1}, kX);
  const RandomProduct p({.outputs = 1, .length = 1, .x = kX}, 1);
  const kernels::Conv2dShape shape{
      .stride_h = 16383, .stride_w = 16383, .pad_h = 16383, .pad_w = 16383};
  const integer::QuantizedConv2d far{shape, p.product};
  b.program.outputs = {b.accumulators("far", far, {pixel}, {3, 3, 1}, p.scale)};
  integer::save_program(seeds / "far_padding", b.program);
}

void tflite_files(const Seeds& seeds) {
  for (const auto& [name, file] : tflite::test::sample_files()) write(seeds / name, file.write());
  tflite::test::FileSpec far = tflite::test::sample_files()[0].second;
  far.tensors[0].shape = {1, 1 << 30, 1 << 30, 2};
  write(seeds / "huge", far.write());
  write(seeds / "nothing", {8, 0, 0, 0, 'T', 'F', 'L', '3'});
}

void states(const Seeds& seeds) {
  Sequential net = prepared_network();
  net(example());  // a pass in training mode sets the ranges
  save(net, seeds / "network");
  const TensorFile network = load_safetensors(seeds / "network");
  TensorFile early;  // early files hold integers as floats
  early.metadata = network.metadata;
  for (const TensorFile::Entry& entry : network.entries()) {
    if (entry.dtype != DType::kI64) {
      early.add(entry);
      continue;
    }
    const std::vector<int64_t> integers = network.values<int64_t>(entry.name);
    std::vector<float> floats;
    for (const int64_t value : integers) floats.push_back(static_cast<float>(value));
    early.add<float>(entry.name, entry.shape, floats);
  }
  save_safetensors(seeds / "early", early);
  TensorFile file;
  file.metadata = {{"text", "quotes \" and \xc3\xa4"}};
  file.add<float>("floats", {2, 2}, std::vector<float>{1.0f, -0.0f, 3.5f, 1e-30f});
  file.add<int64_t>("longs", {1}, std::vector<int64_t>{-7});
  file.add<uint8_t>("empty", {0, 3}, {});
  save_safetensors(seeds / "tensors", file);
  write(seeds / "nothing", safetensors("{}"));
  write(seeds / "deep", safetensors(std::string(2000, '[')));
  write(seeds / "twice", safetensors(R"({"__metadata__":{"a":"1","a":"2"}})"));
}

/// Two inputs and outputs, a shared weight, constants, operations without layers.
Network many_steps() {
  const Tensor weight = Tensor::full({3, 3}, 0.5f);
  return Network(
      {.inputs = {{.name = "x", .shape = {2, 3}, .range = Range{0.0f, 1.0f}},
                  {.name = "z", .shape = {2, 3}}},
       .tensors = {{"one", Tensor::full({}, 1.0f)}, {"scale", Tensor::full({3}, 2.0f), true}},
       .steps = {{"a.fc", std::make_shared<Linear>(weight), {"x"}},
                 {"a.twin", std::make_shared<Linear>(weight, Tensor::zeros({3})), {"z"}},
                 {"norm", std::make_shared<BatchNorm1d>(3), {"a.twin"}},
                 {"drop", std::make_shared<Dropout>(0.5f), {"norm"}},
                 {"sum", std::make_shared<Add>(), {"a.fc", "drop", "x"}},
                 {"mul", make_layer("mul", {}), {"sum", "scale"}},
                 {"sub", make_layer("sub", {}), {"mul", "one"}},
                 {"turn",
                  make_layer("transpose", {.options = {{"perm", std::vector<int64_t>{0, 2, 1}}}}),
                  {"sub"}},
                 {"parts", std::make_shared<Concat>(), {"turn", "turn"}},
                 {"slice", std::make_shared<Slice>(1, SliceOptions{.end = -1}), {"parts"}},
                 {"clamp", std::make_shared<Clamp>(0.0f, 6.0f), {"slice"}},
                 {"mean", std::make_shared<Mean>(1), {"clamp"}},
                 {"shape", std::make_shared<Reshape>(std::vector<int64_t>{-1, 1}), {"mean"}}},
       .outputs = {"shape", "a.fc"},
       .classes = {"a", "b"},
       .listed = {"sum"},
       .metadata = {{"about", "a seed"}}});
}

void networks(const Seeds& seeds) {
  save_network(many_steps(), seeds / "many_steps");
  Sequential net = prepared_network();
  net(example());
  save_network(trace(net, example()), seeds / "prepared");
  Sequential signal{Conv1d{2, 3, {.kernel = 3, .padding = 1}},
                    BatchNorm1d{3},
                    ReLU6{},
                    MaxPool1d{2},
                    Upsample{{2, 1}},
                    GlobalAvgPool1d{},
                    Flatten{},
                    PReLU{3},
                    Linear{3, 2},
                    Softmax{}};
  save_network(trace(signal, Tensor::full({1, 8, 2}, 0.5f)), seeds / "signal");
}

void idx_files(const Seeds& seeds) {
  using namespace test;
  const std::vector<uint8_t> images = idx({3, 4, 4}, counting(48));
  write(seeds / "images", images);
  write(seeds / "images.gz", gzip(images));
  write(seeds / "labels.gz", gzip(idx({3}, {0, 1, 2})));
  write(seeds / "huge", idx({0xffffffff, 0xffffffff}, {}));
  write(seeds / "bomb.gz", gzip(idx({1 << 20}, std::vector<uint8_t>(1 << 20))));
}

void npy_files(const Seeds& seeds) {
  using namespace test;
  write(seeds / "bytes", npy("|u1", "(2, 3)", counting(6)));
  write(seeds / "signed", npy("|i1", "(6,)", counting(6)));
  write(seeds / "shorts", npy("<i2", "(3,)", counting(6)));
  write(seeds / "labels", npy("<i4", "(3,)", bytes_of<int32_t>({0, 1, 2})));
  write(seeds / "longs", npy("<i8", "(2,)", bytes_of<int64_t>({0, int64_t{1} << 40})));
  write(seeds / "floats", npy("<f4", "(1, 2)", bytes_of<float>({0.5f, -1.0f}), 2));
  write(seeds / "doubles", npy("<f8", "(2,)", bytes_of<double>({0.5, 1e300}), 3));
  write(seeds / "scalar", npy("<f4", "()", bytes_of<float>({1.0f})));
  write(seeds / "fortran", npy("<f4", "(2, 2)", std::vector<uint8_t>(16), 1, true));
  write(seeds / "big_endian", npy(">f8", "(1,)", std::vector<uint8_t>(8)));
  write(seeds / "huge", npy("<f8", "(4611686018427387904,)", {}));
  write(seeds / "structured", npy_of("{'descr': [('a', '<f4')], 'shape': (1,)}", {}));
  write(seeds / "deep", npy_of(std::string(2000, '('), {}));
}

void csv_files(const Seeds& seeds) {
  write_file(seeds / "table", "a,b,kind\n1,2.5,cat\n-3e2,+.5,dog\n 4 ,1e-3,cat\n");
  write_file(seeds / "quoted",
             "\xef\xbb\xbf\"a\",\"b, \"\"c\"\"\"\r\n\"1\",\"x\ny\"\r\n2,\r\n\r\n");
  write_file(seeds / "bare", "1;2\n3;4");
  write_file(seeds / "ragged", "a,b\n1\n");
  write_file(seeds / "numbers", "x\nnan\n");
  write_file(seeds / "tiny", "x\n1e-45\n1e-60\n3.4e38\n");
  write_file(seeds / "separators", std::string(4000, ',') + '\n');
  write_file(seeds / "open", "a\n\"1\n");
}

void onnx_files(const Seeds& seeds) {
  using namespace test;
  for (const auto& [name, parts] : onnx_networks()) write(seeds / name, onnx_model(parts));
  write(seeds / "nothing", {});
  OnnxParts parts = onnx_gemm();
  parts.nodes.push_back(onnx_node("Relu", {"z"}, {"z"}));
  write(seeds / "cycle", onnx_model(parts));
  parts = onnx_gemm();
  parts.initializers[0] = onnx_floats("w", {int64_t{1} << 40, int64_t{1} << 40}, {});
  write(seeds / "overflow", onnx_model(parts));
  parts = onnx_gemm();
  parts.initializers[0] = onnx_tensor("w", 1, {2, 3})
                              .integer(14, 1)
                              .message(13, Proto().text(1, "location").text(2, "../w"));
  write(seeds / "climbing", onnx_model(parts));
  parts = {
      .nodes = {onnx_node("ConstantOfShape", {"n"}, {"c"}), onnx_node("Add", {"x", "c"}, {"y"})},
      .initializers = {onnx_integers("n", {2}, {1 << 20, 1 << 20})},
      .inputs = {onnx_value("x", {-1, 3})},
      .outputs = {onnx_value("y", {-1, 3})}};
  write(seeds / "huge_constant", onnx_model(parts));
  write(seeds / "qdq", onnx_model(onnx_qdq_gemm()));
  write(seeds / "qoperator", onnx_model(onnx_qoperator_matmul()));
  write(seeds / "qonnx", onnx_model(onnx_qonnx()));
  write(seeds / "qdq_image", onnx_model(onnx_qdq_image()));
  write(seeds / "qoperator_image", onnx_model(onnx_qoperator_image()));
}

void checkpoints(const Seeds& seeds) {
  const std::string folder = seeds / "run";
  train(folder, 1, false);
  for (const std::string& name : names_in(folder))
    std::filesystem::rename(folder + '/' + name, seeds / name);
  std::filesystem::remove(folder);
}

void png_files(const Seeds& seeds) {
  using namespace test;
  write(seeds / "gray", png(3, 2, counting(6), 0));
  write(seeds / "colour", png(2, 2, counting(12), 2));
  write(seeds / "alpha", png(1, 2, counting(8), 6));
  write(seeds / "wide", png(1, 1, counting(2), 0, 16));
  write(seeds / "huge", png(1 << 20, 1 << 20, {}, 0));
  std::vector<uint8_t> longer = png(1, 1, counting(1), 0, 8, {{"tRNS", {0, 1}}});
  longer[33] = 0x1f;  // the first byte of the length of tRNS
  write(seeds / "longer", longer);
  const std::vector<uint8_t> spaces = deflated(std::vector<uint8_t>(100'000, ' '));
  std::vector<uint8_t> text{'k', 0, 0};
  text.insert(text.end(), spaces.begin(), spaces.end());
  write(seeds / "texts", png(1, 1, counting(1), 0, 8, {{"zTXt", text}, {"iCCP", text}}));
  write(seeds / "palette", png(1, 2, {0, 1}, 3, 8, {{"PLTE", counting(6)}, {"tRNS", {9, 200}}}));
  write(seeds / "gamma", png(1, 2, {0, 1}, 0, 8, {{"gAMA", {0, 0, 0x80, 0}}, {"sRGB", {0}}}));
}

void configurations(const Seeds& seeds) {
  using namespace quant;
  for (const std::string& name : QConfig::names())
    write_file(seeds / name, QConfig::named(name).to_json());
  QConfig all;
  all.input_range = {-1.0f, 0.5f};
  int layer = 0;
  for (const ObserverSpec& spec : observer_specs()) {
    LayerConfig& config = all.layers["layer" + std::to_string(layer++)];
    config.activation.observer = spec;
  }
  all.types["Linear"] = QConfig::bits(4, 4).model;
  write_file(seeds / "all", all.to_json());
  write_file(seeds / "deep", "{\"model\":" + std::string(2000, '['));
}

}  // namespace
}  // namespace quantrain::fuzz

int main(int argc, char** argv) try {
  using namespace quantrain::fuzz;
  if (argc != 2) {
    std::cerr << "usage: make_seeds FOLDER\n";
    return 2;
  }
  integer_models({argv[1], "integer_model"});
  tflite_files({argv[1], "tflite"});
  states({argv[1], "state"});
  networks({argv[1], "network"});
  idx_files({argv[1], "idx"});
  npy_files({argv[1], "npy"});
  csv_files({argv[1], "csv"});
  configurations({argv[1], "qconfig"});
  onnx_files({argv[1], "onnx"});
  checkpoints({argv[1], "checkpoint"});
  png_files({argv[1], "png"});
  return 0;
} catch (const quantrain::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
