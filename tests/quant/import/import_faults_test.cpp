#include <limits>

#include "framework/core/error.hpp"
#include "tests/quant/import/imported.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::tflite::test {
namespace {

using quantrain::test::TemporaryFolder;

/// Imports bytes. Returns the text of the error, or "" if they are accepted; then the model ran.
std::string imported(const std::vector<uint8_t>& bytes) {
  try {
    const IntegerModel model = import_tflite(bytes, "test.tflite", int64_t{1} << 26);
    if (model.program().inputs.size() != 1 || model.program().outputs.size() != 1) return "";
    if (model.input_shape().elements() + model.output_size() > 1 << 16) return "";
    std::vector<uint8_t> x(static_cast<size_t>(model.input_shape().elements()), 3);
    std::vector<int32_t> y(static_cast<size_t>(model.output_size()));
    model.run_codes(x, y);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("an imported TFLite network is saved, loaded and classified like any other",
          "[quant][tflite]") {
  const TemporaryFolder folder;
  const std::vector<uint8_t> bytes = small_network().write();
  {
    std::FILE* const file = std::fopen((folder / "net.tflite").c_str(), "wb");
    REQUIRE(file != nullptr);
    REQUIRE(std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
    std::fclose(file);
  }
  const IntegerModel model = import_tflite(folder / "net.tflite");
  CHECK(model.hash() == import(small_network()).hash());
  CHECK(model.input_shape() == Shape{6, 6, 2});
  CHECK(model.logit_scale() == 1.0 / 256);
  const integer::Program& program = model.program();
  CHECK(program.value(program.inputs[0]).name == "x");
  CHECK(program.value(program.outputs[0]).name == "s");
  CHECK(program.steps[0].origin.about.at("operation") == "conv2d");
  CHECK(program.steps[0].origin.weight_scale == std::vector<float>{0.01f, 0.02f, 0.01f, 0.03f});
  model.save(folder / "net.safetensors");
  const IntegerModel loaded = IntegerModel::load(std::string(folder / "net.safetensors"));
  CHECK(loaded.program() == program);
  QUANTRAIN_CHECK_ERROR(import_tflite(folder / "none.tflite"), DataError, "none.tflite");
}

TEST_CASE("files of every TFLite operation are imported and run", "[quant][tflite]") {
  for (const auto& [name, file] : sample_files()) {
    CAPTURE(name);
    const IntegerModel model = import(file);
    CHECK(model.program().steps.size() == (file.operations.size() > 1 ? 5 : 1));
    CHECK(imported(file.write()) == "");
  }
}

TEST_CASE("what has no integer form in a TFLite file is named, all kinds at once",
          "[quant][tflite]") {
  FileSpec f = small_network();
  const auto value = [&](int8_t type) {
    return f.add({.shape = {1, 3}, .type = type, .scale = {0.1f}, .zero_point = {0}});
  };
  const int32_t y = 7;  // of the linear layer
  const auto append = [&](int32_t code, std::vector<int32_t> inputs, int32_t output) {
    f.operations.push_back({.code = code, .inputs = std::move(inputs), .outputs = {output}});
    return output;
  };
  const int32_t lstm = append(16, {y}, value(kInt8));
  append(16, {y}, value(kInt8));
  f.operations.push_back(
      {.code = 32, .inputs = {lstm}, .outputs = {value(kInt8)}, .custom = "Mine"});
  append(14, {value(kFloat32)}, value(kFloat32));  // LOGISTIC
  append(28, {y}, value(kInt16));                  // TANH
  append(19, {lstm}, value(kInt8));                // only reads what has no integer form
  append(400, {y}, value(kInt8));
  const int32_t list = f.list({1, 3});
  append(22, {list}, value(kInt8));  // RESHAPE
  f.add({.name = "tokens", .shape = {1, 3}, .type = kInt32});
  f.inputs.push_back(static_cast<int32_t>(f.tensors.size()) - 1);
  QUANTRAIN_CHECK_ERROR(
      import(f),
      GraphError,
      "[test.tflite] has parts without an integer form: 1 x CUSTOM \"Mine\"; 1 x LOGISTIC of "
      "float32; 2 x LSTM; 1 x RESHAPE of int32; 1 x TANH of int16; 1 x an input of int32; 1 x "
      "operation 400. Convert the network with full integer quantization");
}

TEST_CASE("TFLite operations with types or numbers that have no integer form are refused",
          "[quant][tflite]") {
  const auto refused = [](const char* text, const std::function<void(FileSpec&)>& change) {
    FileSpec f = small_network();
    change(f);
    QUANTRAIN_CHECK_ERROR(import(f), GraphError, text);
  };
  refused("1 x CONV_2D with weights of float32", [](FileSpec& f) { f.tensors[1].type = kFloat32; });
  refused("1 x CONV_2D with weights that are not constant",
          [](FileSpec& f) { f.tensors[1].data.clear(); });
  refused("1 x CONV_2D with weights of 71 bytes",
          [](FileSpec& f) { f.tensors[1].data.pop_back(); });
  refused("1 x CONV_2D with 2 scales of weights along axis 0", [](FileSpec& f) {
    f.tensors[1].scale.resize(2);
    f.tensors[1].zero_point.resize(2);
  });
  refused("1 x CONV_2D with 4 scales of weights along axis 1",
          [](FileSpec& f) { f.tensors[1].axis = 1; });
  refused("1 x CONV_2D with scales of weights that are not positive",
          [](FileSpec& f) { f.tensors[1].scale[2] = -1.0f; });
  refused("1 x CONV_2D with zero points of weights that cannot be subtracted",
          [](FileSpec& f) { f.tensors[1].zero_point[3] = std::numeric_limits<int64_t>::min(); });
  refused("1 x CONV_2D with a bias of int64", [](FileSpec& f) { f.tensors[2].type = kInt64; });
  refused("1 x CONV_2D with 3 biases for 4 outputs",
          [](FileSpec& f) { f.tensors[2].data.resize(12); });
  refused("1 x CONV_2D with a kernel, stride or dilation of 0",
          [](FileSpec& f) { f.operations[0].options[1] = 0; });
  refused("1 x CONV_2D with fused activation 4",
          [](FileSpec& f) { f.operations[0].options[3] = 4; });
  refused("1 x CONV_2D whose output is not [1, 3, 3, 4]", [](FileSpec& f) {
    f.tensors[3].shape = {1, 9, 1, 4};
  });
  refused("1 x CONV_2D: accumulator of channel 0 could reach", [](FileSpec& f) {
    f.tensors[2].data = bytes_of<int32_t>({2147480000, 0, 0, 0});
  });
  refused("1 x CONV_2D without one scale; 1 x an input without one scale",
          [](FileSpec& f) { f.tensors[0].scale.clear(); });
  refused("of shape [2, 6, 6, 2], expected [1, height, width, channels]",
          [](FileSpec& f) { f.tensors[0].shape[0] = 2; });
  refused("of shape [1, -1, 6, 2]", [](FileSpec& f) { f.tensors[0].shape[1] = -1; });
  refused("of shape [1, 65536, 65536, 2]", [](FileSpec& f) {
    f.tensors[0].shape = {1, 65536, 65536, 2};
  });
  refused("1 x FULLY_CONNECTED with shuffled weights",
          [](FileSpec& f) { f.operations[3].options[1] = 1; });
  refused("1 x FULLY_CONNECTED whose weights do not fit its input", [](FileSpec& f) {
    f.tensors[6].shape = {4, 3};
  });
  refused("1 x RESHAPE that changes the scale or zero point",
          [](FileSpec& f) { f.tensors[5].scale = {0.2f}; });
  refused("1 x SOFTMAX without axes, or with beta of 0 or less",
          [](FileSpec& f) { f.operations[4].options[0] = float_bits(0.0f); });
  refused("1 x an output that no operation computes", [](FileSpec& f) { f.outputs = {1}; });
  refused("1 x an input of float32 that no QUANTIZE reads", [](FileSpec& f) {
    f.inputs.push_back(f.add({.name = "z", .shape = {1, 3}, .type = kFloat32}));
  });
}

TEST_CASE("damaged TFLite files are refused, whatever their bytes", "[quant][tflite]") {
  const auto damaged = [](const char* text, const std::function<void(FileSpec&)>& change) {
    FileSpec f = small_network();
    change(f);
    QUANTRAIN_CHECK_ERROR(import(f), DataError, text);
  };
  damaged("[test.tflite] is damaged: tensor 99 does not exist",
          [](FileSpec& f) { f.operations[1].inputs[0] = 99; });
  damaged("is damaged: conv is written twice", [](FileSpec& f) { f.operations[1].outputs[0] = 3; });
  damaged("is damaged: x is written twice", [](FileSpec& f) { f.operations[2].outputs[0] = 0; });
  damaged("is damaged: y is read before it is computed",
          [](FileSpec& f) { std::swap(f.operations[3], f.operations[4]); });
  damaged("is damaged: input x is also a constant or another input",
          [](FileSpec& f) { f.inputs.push_back(0); });
  damaged("is damaged: RESHAPE gives 4 elements, but flat has shape [1, 5]", [](FileSpec& f) {
    f.tensors[5].shape = {1, 5};
  });
  const std::vector<uint8_t> bytes = small_network().write();
  REQUIRE(imported(bytes) == "");
  CHECK(imported({}).find("is no .tflite file") != std::string::npos);
  // Every part of the file, and every change of one byte to these values.
  int64_t refusals = 0;
  for (size_t size = 0; size < bytes.size(); ++size)
    refusals += imported({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}) != "";
  CHECK(refusals > static_cast<int64_t>(bytes.size()) / 2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const uint8_t value : {uint8_t{0},
                                uint8_t{1},
                                uint8_t{127},
                                uint8_t{255},
                                static_cast<uint8_t>(bytes[i] ^ 0x80)}) {
      std::vector<uint8_t> changed = bytes;
      changed[i] = value;
      imported(changed);
    }
  }
}

TEST_CASE("a TFLite file that asks for far more memory than it has bytes is refused",
          "[quant][tflite]") {
  FileSpec f;
  const TensorSpec x{.name = "x", .shape = {1, 4, 4, 1}, .scale = {0.1f}, .zero_point = {0}};
  f.add(x);
  TensorSpec y = x;
  y.name = "y";
  y.shape = {1, 4 + (1 << 20), 4, 1};
  f.add(y);
  const int32_t pads = f.list({0, 0, 0, 1 << 20, 0, 0, 0, 0});
  f.operations = {{.code = 34, .inputs = {0, pads}, .outputs = {1}}};
  f.inputs = {0};
  f.outputs = {1};
  QUANTRAIN_CHECK_ERROR(
      import(f), DataError, "asks for many times more memory than it has bytes, first for y");
  // A pool whose input is large: the memory to run it is above the limit.
  FileSpec large = small_network();
  const std::vector<uint8_t> bytes = large.write();
  QUANTRAIN_CHECK_ERROR(import_tflite(bytes, "large", 100), DataError, "");
}

}  // namespace quantrain::tflite::test
