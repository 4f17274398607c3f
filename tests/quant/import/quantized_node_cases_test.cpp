#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "framework/core/error.hpp"
#include "layers/onnx/elements.hpp"
#include "layers/onnx/reader.hpp"
#include "quant/import/onnx/import_quantized_model.hpp"
#include "quant/lowering/convert.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

// ONNX's own test cases of quantized operators, of Debian's libonnx-testdata.
namespace quantrain {
namespace {

const std::string kNodeCases = "/usr/share/libonnx-testdata/data/node/";

onnx::StoredTensor case_tensor(const std::string& path) {
  return onnx::parse_tensor(test::read_bytes(path), path);
}

/// Whether the converted network gives the expected results: codes, or the real values of codes.
/// All inputs but the first become constants: parameters of quantizers cannot be computed here.
/// most_codes: by how many codes a result may differ.
bool gives_expected(const std::string& name, float most_codes, bool choose_anew = false) {
  onnx::Model model = onnx::read_model(kNodeCases + name + "/model.onnx");
  const std::string data = kNodeCases + name + "/test_data_set_0/";
  std::vector<onnx::ValueInfo>& inputs = model.graph.inputs;
  for (size_t i = 1; i < inputs.size(); ++i) {
    onnx::StoredTensor tensor = case_tensor(data + "input_" + std::to_string(i) + ".pb");
    tensor.name = inputs[i].name;
    model.graph.initializers.push_back(std::move(tensor));
  }
  inputs.resize(1);
  const onnx::StoredTensor given = case_tensor(data + "input_0.pb");
  const onnx::StoredTensor expected = case_tensor(data + "output_0.pb");
  quant::QuantizedOnnx imported =
      quant::import_quantized_model(std::move(model), {.choose_anew = choose_anew});
  const IntegerModel converted = quant::convert(imported.network, imported.network.example());
  // Cases have one channel or no image, so that both layouts are the same.
  const std::vector<float> x = onnx::floats_of(given), y = onnx::floats_of(expected);
  std::vector<int32_t> codes(y.size());
  if (onnx::is_float(given.type)) {
    converted.run(x, codes);
  } else {
    std::vector<uint8_t> bytes;
    const int offset = given.type == onnx::ElementType::kInt8 ? 128 : 0;
    for (const float code : x)
      bytes.push_back(static_cast<uint8_t>(static_cast<int>(code) + offset));
    converted.run_codes(bytes, codes);
  }
  const QParams params = *converted.program().value(converted.program().outputs[0]).params;
  for (size_t i = 0; i < y.size(); ++i) {
    const bool is_real = onnx::is_float(expected.type);
    const auto code = static_cast<float>(codes[i]);
    const float distance = is_real ? code - y[i] / params.scale[0]
                                   : code + static_cast<float>(params.zero_point[0]) - y[i];
    if (std::abs(distance) > most_codes + (is_real ? 1e-3f : 0.0f)) return false;
  }
  return true;
}

TEST_CASE("ONNX's test cases of quantized operators are computed as expected, or refused by name",
          "[quant][import][onnx]") {
  if (!std::filesystem::exists(kNodeCases)) {
    WARN("SKIPPED: libonnx-testdata is not installed");
    return;
  }
  // Empty: equal. Else a part of the reason.
  const std::map<std::string, std::string> cases{
      {"test_basic_convinteger", "its sums have no scale of their own"},
      {"test_convinteger_with_padding", "its sums have no scale of their own"},
      {"test_convinteger_without_padding", "its sums have no scale of their own"},
      {"test_dequantizelinear", "with at least two axes"},
      {"test_dequantizelinear_axis", "a scale for each channel of a computed value"},
      {"test_dynamicquantizelinear", "its ranges are chosen anew for each batch"},
      {"test_dynamicquantizelinear_max_adjusted", "its ranges are chosen anew for each batch"},
      {"test_dynamicquantizelinear_min_adjusted", "its ranges are chosen anew for each batch"},
      {"test_matmulinteger", "its sums have no scale of their own"},
      {"test_qlinearconv", "zero points of weights"},
      {"test_qlinearmatmul_2D", "zero points of weights"},
      {"test_qlinearmatmul_3D", "a matrix for each sample or channel"},
      {"test_quantizelinear", "with at least two axes"},
      {"test_quantizelinear_axis", "a scale for each channel of a computed value"}};
  int known = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kNodeCases)) {
    const std::string name = entry.path().filename().string();
    const bool is_quantized = name.find("quant") != std::string::npos ||
                              name.find("qlinear") != std::string::npos ||
                              name.find("integer") != std::string::npos;
    const bool is_expanded = name.find("expanded") != std::string::npos;
    if (!is_quantized || is_expanded) continue;
    CAPTURE(name);
    const auto expected = cases.find(name);
    known += expected == cases.end() ? 0 : 1;
    try {
      // Other versions have other cases: nobody knows whether they meet a tie.
      const bool equal = gives_expected(name, expected == cases.end() ? 1.0f : 0.0f);
      CHECK(equal);
      if (expected != cases.end()) CHECK(expected->second == "");
    } catch (const Error& error) {
      if (expected == cases.end()) continue;
      CHECK_THAT(error.what(), test::ContainsSubstring(expected->second));
      CHECK(expected->second != "");
      // Weights whose scale is chosen anew are rounded once more.
      if (expected->second == "zero points of weights") CHECK(gives_expected(name, 1.0f, true));
    }
  }
  CHECK(known > 0);
}

}  // namespace
}  // namespace quantrain
