#include "tests/layers/onnx/node_cases.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "layers/network/network.hpp"
#include "layers/onnx/check_model.hpp"
#include "layers/onnx/elements.hpp"
#include "layers/onnx/importer.hpp"
#include "layers/onnx/reader.hpp"
#include "layers/onnx/recognize.hpp"

namespace quantrain::test {
namespace {

using onnx::Model;
using onnx::StoredTensor;
using onnx::Value;

/// Tolerances of ONNX's own test runner: onnx/backend/test/case/test_case.py.
constexpr float kRelative = 1e-3f;
constexpr float kAbsolute = 1e-7f;
/// A network computes with floats where the file cuts numbers to bfloat16, which has 8 bits.
constexpr float kRelativeBfloat16 = 1.0f / 128.0f;

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<StoredTensor> read_tensors(const std::string& prefix,
                                       const std::vector<onnx::ValueInfo>& declared) {
  std::vector<StoredTensor> tensors;
  for (size_t i = 0;; ++i) {
    const std::string path = prefix + std::to_string(i) + ".pb";
    if (!std::filesystem::exists(path)) return tensors;
    tensors.push_back(onnx::parse_tensor(read_file(path), path));
    // Some files say uint16 of bits that are bfloat16.
    onnx::ElementType& type = tensors.back().type;
    if (i < declared.size() && type == onnx::ElementType::kUint16 &&
        declared[i].type == onnx::ElementType::kBfloat16)
      type = declared[i].type;
  }
}

bool agree(const std::vector<float>& values, const std::vector<float>& expected, bool is_bfloat16) {
  const float relative = is_bfloat16 ? kRelativeBfloat16 : kRelative;
  return std::equal(values.begin(),
                    values.end(),
                    expected.begin(),
                    expected.end(),
                    [&](float value, float right) {
                      // The root and logarithm of a negative number: our functions have a value for
                      // every code.
                      if (std::isnan(right)) return true;
                      if (std::isinf(right)) return value == right;
                      return std::abs(value - right) <= kAbsolute + relative * std::abs(right);
                    });
}

bool is_bfloat16(const StoredTensor& tensor) { return tensor.type == onnx::ElementType::kBfloat16; }

/// Elements in the file's order, in the order in which our tensor holds them.
std::vector<float> to_ours(onnx::Atoms& atoms,
                           const Value& x,
                           const std::vector<float>& file,
                           int64_t batch) {
  const auto places =
      onnx::permutation(atoms, onnx::flat(x.axes), onnx::flat(x.storage->axes), batch);
  if (places.empty()) return file;
  std::vector<float> ours;
  for (const int64_t place : places) ours.push_back(file[static_cast<size_t>(place)]);
  return ours;
}

/// Which of the model's inputs are constants.
enum class Constants { kNone, kAllButFirst, kAll };

NodeCase run(const Model& original,
             const std::vector<StoredTensor>& inputs,
             const std::vector<StoredTensor>& outputs,
             Constants constants,
             const std::string& name) {
  NodeCase result{.name = name};
  Model model = original;
  std::map<std::string, std::vector<int64_t>> shapes;
  for (size_t i = 0; i < inputs.size() && i < model.graph.inputs.size(); ++i) {
    StoredTensor tensor = inputs[i];
    tensor.name = model.graph.inputs[i].name;
    if (constants == Constants::kAll || (constants == Constants::kAllButFirst && i > 0)) {
      model.graph.initializers.push_back(tensor);
    } else if (tensor.type != onnx::ElementType::kFloat) {
      result.reason = "its input is " + std::string(name_of(tensor.type));
      return result;
    } else {
      shapes[tensor.name] = tensor.dims;
    }
  }
  model.graph = onnx::recognize(model.graph);
  onnx::Importer importer(model, shapes);
  try {
    importer.run();
  } catch (const DataError& error) {
    result.reason = error.what();
    if (constants != Constants::kAll) return result;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Value value = importer.value(model.graph.outputs[i].name);
      if (value.constant == nullptr) return result;
      const bool equal =
          value.constant->dims == outputs[i].dims &&
          agree(value.constant->floats(), onnx::floats_of(outputs[i]), is_bfloat16(outputs[i]));
      result.result = equal ? NodeCase::Result::kFolded : NodeCase::Result::kWrong;
      if (!equal) return result;
    }
    return result;
  }
  Network network(std::move(importer.parts()));
  network.eval();
  const NoGrad no_grad;
  int64_t batch = 1;
  std::vector<Tensor> x;
  for (size_t i = 0; i < importer.network_inputs().size(); ++i) {
    const Value& input = importer.network_inputs()[i];
    const auto stored = std::find_if(inputs.begin(), inputs.end(), [&](const StoredTensor& tensor) {
      return model.graph.inputs[static_cast<size_t>(&tensor - inputs.data())].name == input.step;
    });
    batch = stored->dims[0];
    std::vector<int64_t> extents{batch};
    for (size_t k = 1; k < input.storage->axes.size(); ++k)
      extents.push_back(importer.atoms().size(input.storage->axes[k]));
    x.push_back(Tensor::from(Shape(extents),
                             to_ours(importer.atoms(), input, onnx::floats_of(*stored), batch)));
  }
  const std::vector<Tensor> y = network(x);
  for (size_t i = 0; i < y.size(); ++i) {
    const Value& output = importer.network_outputs()[i];
    std::vector<int64_t> dims;
    for (const onnx::Extent& extent : importer.shape(output))
      dims.push_back(extent.batch ? extent.n * batch : extent.n);
    const Floats floats = y[i].floats();
    const bool equal = dims == outputs[i].dims &&
                       agree({floats.data(), floats.data() + y[i].elements()},
                             to_ours(importer.atoms(), output, onnx::floats_of(outputs[i]), batch),
                             is_bfloat16(outputs[i]));
    result.result = equal ? NodeCase::Result::kEqual : NodeCase::Result::kWrong;
    if (!equal) return result;
  }
  return result;
}

}  // namespace

std::string onnx_cases_folder() {
  const std::string folder = "/usr/share/libonnx-testdata/data";
  return std::filesystem::exists(folder) ? folder : "";
}

std::vector<std::string> onnx_case_names(const std::string& folder) {
  std::vector<std::string> names;
  for (const char* const kind : {"node", "pytorch-converted", "pytorch-operator", "simple"}) {
    const std::string path = folder + "/" + kind;
    if (!std::filesystem::exists(path)) continue;
    for (const std::string& name : names_in(path)) names.push_back(kind + ("/" + name));
  }
  return names;
}

NodeCase run_node_case(const std::string& folder, const std::string& name) {
  NodeCase result{.name = name};
  try {
    Model model = onnx::read_model(folder + "/" + name + "/model.onnx");
    // Cases of operators that are as old as set 1 or 6 say so, and have not changed since.
    for (onnx::OperatorSet& set : model.operator_sets)
      set.version = set.domain.empty() ? std::max(set.version, onnx::kLeastOpset) : set.version;
    onnx::check_model(model);
    const std::string data = folder + "/" + name + "/test_data_set_0";
    const std::vector<StoredTensor> inputs = read_tensors(data + "/input_", model.graph.inputs);
    const std::vector<StoredTensor> outputs = read_tensors(data + "/output_", model.graph.outputs);
    if (outputs.size() != model.graph.outputs.size()) {
      result.reason = "its outputs are not all tensors";
      return result;
    }
    for (const Constants constants : {Constants::kNone, Constants::kAllButFirst, Constants::kAll}) {
      NodeCase tried;
      try {
        tried = run(model, inputs, outputs, constants, name);
      } catch (const Error& error) {
        tried = {name, NodeCase::Result::kRefused, error.what()};
      }
      if (tried.result != NodeCase::Result::kRefused) return tried;
      if (constants != Constants::kAll) result.reason = tried.reason;
    }
  } catch (const Error& error) {
    result.reason = error.what();
  }
  return result;
}

}  // namespace quantrain::test
