#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
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

// Runs exported networks with ONNX Runtime. Tests that use this have the tag [onnx_runtime], which
// hides them: ctest runs them where Node and the package are installed.
namespace quantrain::quant::test {

/// npm's package that runs the files: QUANTRAIN_ORT, or onnxruntime-node.
inline std::string onnx_runtime() {
  const char* const name = std::getenv("QUANTRAIN_ORT");
  return name == nullptr ? "onnxruntime-node" : name;
}

/// A program of one step of another one.
inline integer::Program only_step(const integer::Program& program, size_t i) {
  const integer::Step& step = program.steps[i];
  integer::Program only;
  integer::Step copy = step;
  copy.inputs.clear();
  std::map<int, int> ids;
  for (const int id : step.inputs) {
    if (!ids.contains(id)) {
      ids[id] = static_cast<int>(only.values.size());
      only.inputs.push_back(ids[id]);
      only.values.push_back(program.value(id));
      only.values.back().features = {};
    }
    copy.inputs.push_back(ids[id]);
  }
  copy.output = static_cast<int>(only.values.size());
  only.values.push_back(program.value(step.output));
  only.outputs = {copy.output};
  only.steps = {copy};
  return only;
}

/// Files of networks, their inputs, and the outputs that the engine computes.
class OnnxCases {
 public:
  /// Keeps the files in a temporary folder, or in this one.
  OnnxCases() : temporary_(std::make_unique<quantrain::test::TemporaryFolder>()) {
    folder_ = temporary_->path();
  }
  explicit OnnxCases(std::string folder) : folder_(std::move(folder)) {}

  /// Adds a network that computes its integers from random codes; with all_steps, all values are
  /// compared. more: entries of the case, see onnx_run.js.
  void add(const integer::Program& program,
           int64_t samples,
           const OnnxExportOptions& options = {},
           const nlohmann::json& more = nlohmann::json::object()) {
    add(program, samples, random_samples(program, samples, 1), options, more);
  }

  /// The same for these codes: all samples of the first input, then those of the next.
  void add(const integer::Program& program,
           int64_t samples,
           const std::vector<uint8_t>& codes,
           OnnxExportOptions options,
           const nlohmann::json& more = nlohmann::json::object()) {
    options.input = OnnxInput::kCodes;
    options.output = OnnxOutput::kIntegers;
    options.layout = OnnxLayout::kChannelsLast;
    const std::string name = next_name();
    nlohmann::json test = begin(name, onnx_model(program, options), more);
    std::vector<std::vector<uint8_t>> values(program.values.size());
    const uint8_t* at = codes.data();
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      const integer::Value& value = program.value(program.inputs[i]);
      const int64_t size = samples * value.shape.elements();
      values[static_cast<size_t>(program.inputs[i])].assign(at, at + size);
      at += size;
    }
    trace(program, samples, values);
    const auto put_value = [&](const std::string& end, int id) {
      const integer::Value& value = program.value(id);
      const std::vector<uint8_t>& bytes = values[static_cast<size_t>(id)];
      std::vector<int64_t> dims{samples};
      dims.insert(dims.end(), value.shape.begin(), value.shape.end());
      if (value.is_codes()) return put<uint8_t>(name + end, dims, bytes);
      return put<int32_t>(
          name + end, dims, {reinterpret_cast<const int32_t*>(bytes.data()), bytes.size() / 4});
    };
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      const std::string end = onnx::end_name("input", i, program.inputs.size());
      test["inputs"][end] = put_value(end, program.inputs[i]);
    }
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      const std::string end = onnx::end_name("output", i, program.outputs.size());
      test["outputs"][end] = put_value(end, program.outputs[i]);
    }
    for (size_t i = 0; options.all_steps && i < program.steps.size(); ++i) {
      const std::string end = "step" + std::to_string(i);
      test["outputs"][end] = put_value(end, program.steps[i].output);
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
    const std::string name = next_name();
    nlohmann::json test = begin(name, model, more);
    test["inputs"]["input"] = put(name + "x", x_dims, x);
    test["outputs"]["output"] = put(name + "y", y_dims, y);
    cases_.push_back(std::move(test));
  }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void write() const { std::ofstream(path("cases.json")) << nlohmann::json(cases_).dump(); }

  /// Runs all. Returns an empty string if everything is equal, else what differs. printed, if not
  /// null: what the script prints.
  std::string run(std::string* printed = nullptr) const {
    write();
    const std::string log = path("log");
    const std::string command = std::string("node ") + QUANTRAIN_TEST_DATA +
                                "/../quant/export/onnx_run.js " + path("cases.json") + " " +
                                onnx_runtime() + " >" + log + " 2>&1";
    const bool equal = std::system(command.c_str()) == 0;
    if (printed != nullptr) *printed = contents(log);
    return equal ? "" : contents(log);
  }

 private:
  std::string next_name() const { return "net" + std::to_string(cases_.size()); }

  nlohmann::json begin(const std::string& name,
                       const onnx::Model& model,
                       const nlohmann::json& more) {
    onnx::write_model(path(name + ".onnx"), model);
    nlohmann::json test{{"model", path(name + ".onnx")}, {"optimize", {"disabled", "all"}}};
    test.update(more);
    return test;
  }

  /// Fills in what the steps compute, as bytes. The inputs are there.
  static void trace(const integer::Program& program,
                    int64_t samples,
                    std::vector<std::vector<uint8_t>>& values) {
    const IntegerModel model{integer::Program(program)};
    for (int64_t first = 0; first < samples; first += IntegerModel::kChunk) {
      const int64_t n = std::min(samples - first, IntegerModel::kChunk);
      std::vector<const uint8_t*> inputs;
      for (const int id : program.inputs) {
        inputs.push_back(values[static_cast<size_t>(id)].data() +
                         first * program.value(id).shape.elements());
      }
      model.trace(n, inputs, [&](size_t step, const void* output) {
        const int id = program.steps[step].output;
        const integer::Value& value = program.value(id);
        const int64_t bytes = n * value.shape.elements() * (value.is_codes() ? 1 : 4);
        const auto* const from = static_cast<const uint8_t*>(output);
        std::vector<uint8_t>& to = values[static_cast<size_t>(id)];
        to.insert(to.end(), from, from + bytes);
      });
    }
  }

  template <class T>
  nlohmann::json put(const std::string& name,
                     const std::vector<int64_t>& dims,
                     std::span<const T> values) const {
    std::ofstream(path(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size_bytes()));
    constexpr const char* kType = std::is_same_v<T, uint8_t>   ? "uint8"
                                  : std::is_same_v<T, int32_t> ? "int32"
                                  : std::is_same_v<T, int64_t> ? "int64"
                                                               : "float32";
    return {{"type", kType}, {"dims", dims}, {"file", path(name)}};
  }
  std::unique_ptr<quantrain::test::TemporaryFolder> temporary_;
  std::string folder_;
  std::vector<nlohmann::json> cases_;
};

}  // namespace quantrain::quant::test
