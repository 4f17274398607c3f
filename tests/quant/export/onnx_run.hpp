#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "framework/integer/integer_model.hpp"
#include "layers/onnx/writer.hpp"
#include "quant/export/onnx/export_onnx.hpp"
#include "tests/quant/export/c99_build.hpp"
#include "tests/quant/random_network.hpp"
#include "tests/temporary_folder.hpp"

// Runs exported networks with ONNX Runtime.
namespace quantrain::quant::test {

/// npm's package that runs the files: QUANTRAIN_ORT, or onnxruntime-node.
inline std::string onnx_runtime() {
  const char* const name = std::getenv("QUANTRAIN_ORT");
  return name == nullptr ? "onnxruntime-node" : name;
}

/// Files of networks, their inputs, and the outputs that the engine computes.
class OnnxCases {
 public:
  /// Adds a network that computes its integers from codes; with all_steps, all values are compared.
  /// more: entries of the case, see onnx_run.js.
  void add(const integer::Program& program,
           int64_t samples,
           OnnxExportOptions options = {},
           const nlohmann::json& more = nlohmann::json::object()) {
    options.input = OnnxInput::kCodes;
    options.output = OnnxOutput::kIntegers;
    options.layout = OnnxLayout::kChannelsLast;
    const std::string name = "net" + std::to_string(cases_.size());
    onnx::write_model(folder_ / (name + ".onnx"), onnx_model(program, options));
    nlohmann::json test{{"model", folder_ / (name + ".onnx")}, {"optimize", {"disabled", "all"}}};
    test.update(more);
    const IntegerModel model{integer::Program(program)};
    const std::vector<uint8_t> codes = random_samples(program, samples, 1);
    std::vector<const uint8_t*> inputs;
    const uint8_t* at = codes.data();
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      const integer::Value& value = program.value(program.inputs[i]);
      const auto size = static_cast<size_t>(samples * value.shape.elements());
      inputs.push_back(at);
      test["inputs"][end_name("input", i, program.inputs.size())] =
          put<uint8_t>(name + "x" + std::to_string(i), samples, value.shape, {at, size});
      at += size;
    }
    std::vector<std::vector<uint8_t>> steps(program.values.size());
    model.trace(samples, inputs, [&](size_t step, const void* output) {
      const integer::Value& value = program.value(program.steps[step].output);
      const auto size = static_cast<size_t>(samples * value.shape.elements()) *
                        (value.is_codes() ? 1 : sizeof(int32_t));
      const auto* const bytes = static_cast<const uint8_t*>(output);
      steps[static_cast<size_t>(program.steps[step].output)].assign(bytes, bytes + size);
    });
    for (size_t i = 0; i < inputs.size(); ++i) {
      const integer::Value& value = program.value(program.inputs[i]);
      steps[static_cast<size_t>(program.inputs[i])].assign(
          inputs[i], inputs[i] + samples * value.shape.elements());
    }
    const auto expect = [&](const std::string& output, int id) {
      const integer::Value& value = program.value(id);
      const std::vector<uint8_t>& bytes = steps[static_cast<size_t>(id)];
      test["outputs"][output] =
          value.is_codes()
              ? put<uint8_t>(name + output, samples, value.shape, bytes)
              : put<int32_t>(name + output,
                             samples,
                             value.shape,
                             {reinterpret_cast<const int32_t*>(bytes.data()), bytes.size() / 4});
    };
    for (size_t i = 0; i < program.outputs.size(); ++i)
      expect(end_name("output", i, program.outputs.size()), program.outputs[i]);
    if (options.all_steps) {
      for (size_t i = 0; i < program.steps.size(); ++i)
        expect("step" + std::to_string(i), program.steps[i].output);
    }
    cases_.push_back(std::move(test));
  }

  /// Adds a file with one input and one output that were computed elsewhere.
  template <class X, class Y>
  void add(const onnx::Model& model,
           const std::vector<int64_t>& x_dims,
           std::span<const X> x,
           const std::vector<int64_t>& y_dims,
           std::span<const Y> y,
           const nlohmann::json& more = nlohmann::json::object()) {
    const std::string name = "net" + std::to_string(cases_.size());
    onnx::write_model(folder_ / (name + ".onnx"), model);
    nlohmann::json test{{"model", folder_ / (name + ".onnx")}, {"optimize", {"disabled", "all"}}};
    test.update(more);
    test["inputs"]["input"] = put(name + "x", x_dims, x);
    test["outputs"]["output"] = put(name + "y", y_dims, y);
    cases_.push_back(std::move(test));
  }

  std::string path(const std::string& name) const { return folder_ / name; }

  /// Runs all. Returns an empty string if everything is equal, else what differs. printed, if not
  /// null: what the script prints.
  std::string run(std::string* printed = nullptr) const {
    std::ofstream(folder_ / "cases.json") << nlohmann::json(cases_).dump();
    const std::string log = folder_ / "log";
    const std::string command = std::string("node ") + QUANTRAIN_TEST_DATA +
                                "/../quant/export/onnx_run.js " + (folder_ / "cases.json") + " " +
                                onnx_runtime() + " >" + log + " 2>&1";
    const bool equal = std::system(command.c_str()) == 0;
    if (printed != nullptr) *printed = contents(log);
    return equal ? "" : contents(log);
  }

 private:
  static std::string end_name(const char* what, size_t i, size_t count) {
    return count == 1 ? what : what + std::to_string(i);
  }
  template <class T>
  nlohmann::json put(const std::string& name,
                     const std::vector<int64_t>& dims,
                     std::span<const T> values) const {
    std::ofstream(folder_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size_bytes()));
    constexpr const char* kType = std::is_same_v<T, uint8_t>   ? "uint8"
                                  : std::is_same_v<T, int32_t> ? "int32"
                                  : std::is_same_v<T, int64_t> ? "int64"
                                                               : "float32";
    return {{"type", kType}, {"dims", dims}, {"file", folder_ / name}};
  }
  template <class T>
  nlohmann::json put(const std::string& name,
                     int64_t samples,
                     const Shape& shape,
                     std::span<const T> values) const {
    std::vector<int64_t> dims{samples};
    dims.insert(dims.end(), shape.begin(), shape.end());
    return put(name, dims, values);
  }

  quantrain::test::TemporaryFolder folder_;
  std::vector<nlohmann::json> cases_;
};

}  // namespace quantrain::quant::test
