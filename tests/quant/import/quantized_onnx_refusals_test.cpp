#include <functional>
#include <limits>

#include "quant/import/onnx/import_quantized_onnx.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/import/quantized_onnx_files.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

// What a quantized ONNX file may not say, or says without this library being able to keep it.
namespace quantrain {
namespace {

using test::OnnxParts;
using test::Proto;

quant::QuantizedOnnx import_file(const OnnxParts& parts,
                                 const quant::QuantizedOnnxOptions& options = {}) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder / "test.onnx", test::onnx_model(parts));
  return quant::import_quantized_onnx(folder / "test.onnx", options);
}

/// Replaces the initializer of this name.
void set_initializer(OnnxParts& parts, const std::string& name, const Proto& tensor) {
  const std::string key = Proto().text(8, name).bytes;
  for (Proto& entry : parts.initializers) {
    if (entry.bytes.find(key) != std::string::npos) entry = tensor;
  }
}

Proto& node_with(OnnxParts& parts, const std::string& output) {
  const std::string key = Proto().text(2, output).bytes;
  for (Proto& entry : parts.nodes) {
    if (entry.bytes.find(key) != std::string::npos) return entry;
  }
  throw std::logic_error("no node gives " + output);
}

/// The quantizer of the input, whose codes are then those of its attribute output_dtype.
Proto& quantizer_without_zero(OnnxParts& parts) {
  return node_with(parts, "xd_q") = test::onnx_node("QuantizeLinear", {"x", "xd_s"}, {"xd_q"});
}

struct RefusedFile {
  const char* message;
  std::function<void(OnnxParts&)> change;
};

TEST_CASE("a quantized ONNX file that cannot be kept is refused by name", "[quant][import][onnx]") {
  using test::onnx_attribute;
  using test::onnx_node;
  using test::onnx_node_of;
  const auto quantizer = [](OnnxParts& parts) -> Proto& { return node_with(parts, "xd_q"); };
  const std::vector<RefusedFile> files{
      {"DynamicQuantizeLinear (its ranges are chosen anew for each batch): 1 use",
       [&](OnnxParts& parts) {
         quantizer(parts) = onnx_node("DynamicQuantizeLinear", {"x"}, {"xd_q", "s", "z"});
       }},
      {"MatMulInteger (its sums have no scale of their own): 1 use",
       [&](OnnxParts& parts) {
         node_with(parts, "h") = onnx_node("MatMulInteger", {"xd_q", "fc.weight_quantized"}, {"h"});
       }},
      {"a scale for each channel of a computed value",
       [](OnnxParts& parts) {
         set_initializer(parts, "xd_s", test::onnx_floats("xd_s", {3}, {1, 2, 3}));
       }},
      {"a scale that is not positive",
       [](OnnxParts& parts) { set_initializer(parts, "xd_s", test::onnx_scalar("xd_s", 0.0f)); }},
      {"another number of zero points than of scales",
       [](OnnxParts& parts) {
         set_initializer(parts, "xd_z", test::onnx_u8("xd_z", {2}, {1, 2}));
       }},
      {"codes of the type uint16: values have at most 8 bits",
       [](OnnxParts& parts) {
         set_initializer(parts, "xd_z", test::onnx_bytes("xd_z", 4, {}, {1, 0}));
       }},
      {"\"xd_s\" is computed, expected a constant",
       [](OnnxParts& parts) {
         std::erase_if(parts.initializers, [](const Proto& tensor) {
           return tensor.bytes.find(Proto().text(8, "xd_s").bytes) != std::string::npos;
         });
         parts.inputs.push_back(test::onnx_value("xd_s", {1}));
       }},
      {"as codes with u8 scale 0.25 zero point 10, but they have u8 scale 0.5 zero point 10",
       [](OnnxParts& parts) {
         parts.initializers.push_back(test::onnx_scalar("other_s", 0.25f));
         node_with(parts, "xd") =
             onnx_node("DequantizeLinear", {"xd_q", "other_s", "xd_z"}, {"xd"});
       }},
      {"nothing says what these codes mean",
       [](OnnxParts& parts) {
         node_with(parts, "xd") = onnx_node("DequantizeLinear", {"x", "xd_s", "xd_z"}, {"xd"});
       }},
      {"another number of scales than of channels",
       [](OnnxParts& parts) {
         set_initializer(parts, "w_s", test::onnx_floats("w_s", {3}, {1, 2, 3}));
         set_initializer(parts, "w_z", test::onnx_i8("w_z", {3}, {0, 0, 0}));
       }},
      {"a scale for each block",
       [](OnnxParts& parts) {
         node_with(parts, "w").message(5, onnx_attribute("block_size", int64_t{2}));
       }},
      {"\"w_s\" has no scale",
       [](OnnxParts& parts) {
         set_initializer(parts, "w_s", test::onnx_floats("w_s", {0}, {}));
         set_initializer(parts, "w_z", test::onnx_i8("w_z", {0}, {}));
       }},
      {"codes of the type int64",
       [](OnnxParts& parts) {
         const std::vector<int64_t> codes{1, 2, 3, -4, 5, std::numeric_limits<int64_t>::max()};
         set_initializer(
             parts,
             "fc.weight_quantized",
             test::onnx_tensor("fc.weight_quantized", 7, {2, 3}).text(9, test::raw_bytes(codes)));
       }},
      {"codes of the type float",
       [](OnnxParts& parts) {
         quantizer_without_zero(parts).message(5, onnx_attribute("output_dtype", int64_t{1}));
       }},
      {"quantrain.Quantizer (of a domain that no file may have): 1 use",
       [](OnnxParts& parts) {
         node_with(parts, "h") = onnx_node_of(
             "quantrain", "Quantizer", {"xd"}, {"h"}, {onnx_attribute("index", int64_t{1} << 30)});
       }},
      {"com.microsoft.QLinearSoftmax (its operator set is not that of the file): 1 use",
       [](OnnxParts& parts) {
         node_with(parts, "h") = onnx_node_of("com.microsoft",
                                              "QLinearSoftmax",
                                              {"xd_q", "xd_s", "xd_z", "xd_s", "xd_z"},
                                              {"h"},
                                              {onnx_attribute("opset", int64_t{12})});
       }},
      {"QuantizeLinear (constants become too large): ",
       [](OnnxParts& parts) {
         const std::vector<float> zeros(4096);
         parts.initializers.push_back(test::onnx_floats("large", {4096}, zeros));
         std::vector<std::string> codes;
         for (int i = 0; i < 600; ++i) {
           codes.push_back("q" + std::to_string(i));
           parts.nodes.push_back(onnx_node("QuantizeLinear", {"large", "xd_s"}, {codes.back()}));
         }
         parts.nodes.push_back(
             onnx_node("Concat", codes, {"all"}, {onnx_attribute("axis", int64_t{0})}));
         parts.outputs.push_back(test::onnx_value("all", {600 * 4096}));
       }},
      {"codes of the type bool",
       [](OnnxParts& parts) {
         set_initializer(parts, "xd_z", test::onnx_bytes("xd_z", 9, {}, {1}));
       }},
      {"with bounds between which there is no code",
       [](OnnxParts& parts) {
         parts.initializers.push_back(test::onnx_u8("low", {}, {13}));
         parts.initializers.push_back(test::onnx_u8("high", {}, {12}));
         node_with(parts, "xd") = onnx_node("Clip", {"xd_q", "low", "high"}, {"xd_c"});
         parts.nodes.insert(parts.nodes.begin() + 4,
                            onnx_node("DequantizeLinear", {"xd_c", "xd_s", "xd_z"}, {"xd"}));
       }},
      {"Relu (of codes): 1 use",
       [](OnnxParts& parts) { node_with(parts, "xd") = onnx_node("Relu", {"xd_q"}, {"xd"}); }},
      {"onnx.brevitas.BipolarQuant (a computed value of 1 bit: values have at least 2): 1 use",
       [](OnnxParts& parts) {
         node_with(parts, "h") =
             onnx_node_of("onnx.brevitas", "BipolarQuant", {"xd", "xd_s"}, {"h"});
       }},
      {"qonnx.custom_op.general.Trunc (it rounds down",
       [](OnnxParts& parts) {
         node_with(parts, "h") = onnx_node_of(
             "qonnx.custom_op.general", "Trunc", {"xd", "xd_s", "b_z", "b_z", "b_z"}, {"h"});
       }},
      {"onnx.brevitas.Quant (rounding_mode FLOOR): 1 use",
       [](OnnxParts& parts) {
         node_with(parts, "h") = onnx_node_of("onnx.brevitas",
                                              "Quant",
                                              {"xd", "xd_s", "b_z", "b_z"},
                                              {"h"},
                                              {onnx_attribute("rounding_mode", "FLOOR")});
       }},
      {"onnx.brevitas.Quant (signed codes of 1 bit): 1 use",
       [](OnnxParts& parts) {
         parts.initializers.push_back(test::onnx_scalar("one", 1.0f));
         node_with(parts, "h") =
             onnx_node_of("onnx.brevitas", "Quant", {"xd", "xd_s", "one", "one"}, {"h"});
       }},
      {"com.microsoft.QLinearSigmoid (lacks an input): 1 use",
       [](OnnxParts& parts) {
         node_with(parts, "h") =
             onnx_node_of("com.microsoft", "QLinearSigmoid", {"xd_q", "xd_s", "xd_z"}, {"h"});
       }},
      {"Gru", [](OnnxParts& parts) { node_with(parts, "h") = onnx_node("Gru", {"xd"}, {"h"}); }},
      {"has no quantizer: read this network of floats with import_onnx()",
       [](OnnxParts& parts) { parts = test::onnx_gemm(); }},
  };
  for (const RefusedFile& file : files) {
    CAPTURE(file.message);
    OnnxParts parts = test::onnx_qdq_gemm();
    file.change(parts);
    CHECK_THROWS_AS(import_file(parts), DataError);
    CHECK_THROWS_WITH(import_file(parts), test::ContainsSubstring(file.message));
  }
}

struct MissingPart {
  const char* message;
  std::function<void(OnnxParts&)> change;
};

TEST_CASE("what a quantized ONNX file does not say is refused, or chosen anew",
          "[quant][import][onnx]") {
  const std::vector<MissingPart> files{
      {"fc: zero points of weights: without them the codes reach from -207 to 3",
       [](OnnxParts& parts) {
         set_initializer(parts, "w_z", test::onnx_i8("w_z", {2}, {0, 80}));
       }},
      {"fc: a scale for each input channel",
       [](OnnxParts& parts) {
         set_initializer(parts, "w_s", test::onnx_floats("w_s", {3}, {0.25f, 0.5f, 1.0f}));
         set_initializer(parts, "w_z", test::onnx_i8("w_z", {3}, {0, 0, 0}));
         node_with(parts, "w") = test::onnx_node("DequantizeLinear",
                                                 {"fc.weight_quantized", "w_s", "w_z"},
                                                 {"w"},
                                                 {test::onnx_attribute("axis", int64_t{1})});
       }},
      {"Gemm: weights that the file does not quantize",
       [](OnnxParts& parts) {
         node_with(parts, "w") = test::onnx_node("Identity", {"w_floats"}, {"w"});
         parts.initializers.push_back(test::onnx_floats("w_floats", {2, 3}, {1, 2, 3, -4, 5, -6}));
       }},
      {"Sigmoid: a result that the file does not quantize",
       [](OnnxParts& parts) {
         parts.nodes[4] = test::onnx_node(
             "Gemm", {"xd", "w", "b"}, {"g"}, {test::onnx_attribute("transB", int64_t{1})}, "Gemm");
         parts.nodes.insert(parts.nodes.begin() + 5,
                            {test::onnx_node("Sigmoid", {"g"}, {"a"}, {}, "Sigmoid"),
                             test::onnx_node("Tanh", {"a"}, {"h"}, {}, "Tanh")});
       }},
  };
  for (const MissingPart& file : files) {
    CAPTURE(file.message);
    OnnxParts parts = test::onnx_qdq_gemm();
    file.change(parts);
    CHECK_THROWS_AS(import_file(parts), QuantError);
    CHECK_THROWS_WITH(import_file(parts), test::ContainsSubstring(file.message));
    quant::QuantizedOnnx imported = import_file(parts, {.choose_anew = true});
    CHECK(!imported.report.is_complete());
    const Tensor x = test::random_tensor({4, 3}, 1, -4.0f, 4.0f);
    quant::calibrate(imported.network, x);
    CHECK(quant::convert(imported.network, imported.network.example()).output_size() == 2);
    // What the file says stays.
    CHECK(imported.network.inputs()[0].range == Range{-5.0f, 122.5f});
  }
}

TEST_CASE("an output that a quantizer reads, too, is refused", "[quant][import][onnx]") {
  OnnxParts parts = test::onnx_qdq_gemm();
  parts.outputs.push_back(test::onnx_value("h", {-1, 2}));
  CHECK_THROWS_AS(import_file(parts), QuantError);
  CHECK_THROWS_WITH(import_file(parts), test::ContainsSubstring("is a real number, but"));
  CHECK(import_file(parts, {.onnx = {.outputs = {"y"}}}).report.is_complete());
}

TEST_CASE("an input that a quantized ONNX file leaves in floats needs a range",
          "[quant][import][onnx]") {
  OnnxParts parts = test::onnx_qdq_gemm();
  parts.nodes[4] = test::onnx_node(
      "Gemm", {"x", "w", "b"}, {"h"}, {test::onnx_attribute("transB", int64_t{1})}, "Gemm");
  CHECK_THROWS_AS(import_file(parts), QuantError);
  CHECK_THROWS_WITH(import_file(parts),
                    test::ContainsSubstring("does not quantize the input \"x\": give its range"));
  quant::QuantizedOnnx imported = import_file(parts, {.ranges = {{"x", {0.0f, 1.0f}}}});
  CHECK(imported.report.is_complete());
  CHECK(imported.network.inputs()[0].range == Range{0.0f, 1.0f});
  CHECK_THROWS_WITH(import_file(parts, {.ranges = {{"x", {0.0f, 1.0f}}, {"z", {0.0f, 1.0f}}}}),
                    test::ContainsSubstring("a range is given for \"z\", which is no input"));
}

TEST_CASE("the import of networks of floats names the one of quantized networks",
          "[quant][import][onnx]") {
  const test::TemporaryFolder folder;
  test::write_bytes(folder / "test.onnx", test::onnx_model(test::onnx_qdq_gemm()));
  CHECK_THROWS_WITH(import_onnx(folder / "test.onnx"),
                    test::ContainsSubstring("QuantizeLinear (of a quantized network, which "
                                            "quant::import_quantized_onnx() reads): 2 uses"));
}

TEST_CASE("a quantized ONNX file of large values is refused before it runs",
          "[quant][import][onnx]") {
  // The input has 3 elements, and each of the other values, quantized or not, 3 or 2.
  CHECK_THROWS_AS(import_file(test::onnx_qdq_gemm(), {.most_elements = 8}), DataError);
  CHECK_THROWS_WITH(import_file(test::onnx_qdq_gemm(), {.most_elements = 8}),
                    test::ContainsSubstring("the values of a sample have 10 elements, more than "
                                            "QuantizedOnnxOptions::most_elements, 8"));
  // Inputs whose elements together are beyond int64.
  OnnxParts parts = test::onnx_qdq_gemm();
  for (int i = 0; i < (1 << 16); ++i)
    parts.inputs.push_back(test::onnx_value("x" + std::to_string(i), {-1, int64_t{1} << 48}));
  CHECK_THROWS_WITH(import_file(parts), test::ContainsSubstring("::most_elements"));
}

TEST_CASE("a value that two quantizers read in two ways is refused", "[quant][import][onnx]") {
  OnnxParts parts = test::onnx_qdq_gemm();
  test::add_qdq(parts, "h", "y2", 4.0f, 7);
  parts.outputs.push_back(test::onnx_value("y2", {-1, 2}));
  CHECK_THROWS_AS(import_file(parts), QuantError);
  CHECK_THROWS_WITH(
      import_file(parts),
      test::ContainsSubstring("\"fc\" is quantized in two ways, u8 scale 2 zero point "
                              "100 and u8 scale 4 zero point 7"));
}

}  // namespace
}  // namespace quantrain
