#include <algorithm>
#include <functional>

#include "framework/core/error.hpp"
#include "layers/onnx/reader.hpp"
#include "layers/onnx/writer.hpp"
#include "quant/export/onnx/export_onnx.hpp"
#include "quant/export/onnx/load_exported.hpp"
#include "quant/import/onnx/import_quantized_onnx.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/random_network.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::quant::test {
namespace {

using quantrain::test::TemporaryFolder;

std::string& metadata_of(onnx::Model& model, const std::string& key) {
  const auto entry = std::find_if(
      model.metadata.begin(), model.metadata.end(), [&](const auto& m) { return m.first == key; });
  REQUIRE(entry != model.metadata.end());
  return entry->second;
}

/// Loads an exported program whose file was changed.
IntegerModel load_changed(const std::function<void(onnx::Model&)>& change) {
  const TemporaryFolder folder;
  onnx::Model model = onnx_model(integer::test::every_operation());
  change(model);
  onnx::write_model(folder / "changed.onnx", model);
  return load_exported_onnx(folder / "changed.onnx");
}

}  // namespace

TEST_CASE("reductions have their axes where the operator set expects them", "[quant][onnx]") {
  const auto check = [](const OnnxExportOptions& options, size_t of_maximum, size_t of_sum) {
    const onnx::Model model = onnx_model(integer::test::every_operation(), options);
    int64_t reductions = 0;
    for (const onnx::Node& node : model.graph.nodes) {
      if (!node.op_type.starts_with("Reduce")) continue;
      ++reductions;
      const size_t inputs = node.op_type == "ReduceMax" ? of_maximum : of_sum;
      CHECK(node.inputs.size() == inputs);
      CHECK((node.find("axes") == nullptr) == (inputs == 2));
    }
    CHECK(reductions >= 2);
  };
  check({}, 1, 1);
  check({.form = OnnxForm::kQdq}, 1, 2);
  check({.form = OnnxForm::kQdq, .int4_weights = true}, 2, 2);
}

TEST_CASE("an exported program is loaded again with the same hash and metadata", "[quant][onnx]") {
  const TemporaryFolder folder;
  integer::Program every = integer::test::every_operation();
  every.metadata["classes"] = "cat, dog";
  for (const OnnxExportOptions& options :
       {OnnxExportOptions{},
        OnnxExportOptions{.form = OnnxForm::kQdq},
        OnnxExportOptions{.form = OnnxForm::kQdq, .int4_weights = true},
        OnnxExportOptions{.input = OnnxInput::kCodes, .output = OnnxOutput::kIntegers},
        OnnxExportOptions{.layout = OnnxLayout::kChannelsLast, .all_steps = true}}) {
    export_onnx(every, folder / "every.onnx", options);
    CHECK(is_exported_onnx(folder / "every.onnx"));
    CHECK(load_exported_onnx(folder / "every.onnx").program() == every);
    for (uint64_t seed = 0; seed < 5; ++seed) {
      const integer::Program program = integer::test::random_program(seed);
      export_onnx(program, folder / "random.onnx", options);
      CHECK(load_exported_onnx(folder / "random.onnx").program() == program);
    }
  }
}

TEST_CASE("an exported file that was changed is refused", "[quant][onnx]") {
  CHECK_NOTHROW(load_changed([](onnx::Model&) {}));
  CHECK_NOTHROW(load_changed([](onnx::Model& m) { m.graph.nodes[3].name = "another name"; }));
  const char* const changed = "the graph is not the one that its metadata describe";
  // A weight, a constant, an operator, a wire, the number of outputs.
  QUANTRAIN_CHECK_ERROR(load_changed([](onnx::Model& m) {
                          for (onnx::StoredTensor& t : m.graph.initializers) {
                            if (t.name != "conv/weight") continue;
                            std::vector<uint8_t> bytes(t.bytes.view.begin(), t.bytes.view.end());
                            bytes[7] = static_cast<uint8_t>(bytes[7] == 128 ? 129 : 128);
                            t = onnx::make_tensor(t.name, t.type, t.dims, bytes);
                          }
                        }),
                        DataError,
                        changed);
  QUANTRAIN_CHECK_ERROR(
      load_changed([](onnx::Model& m) { m.graph.nodes[4].op_type = "Sub"; }), DataError, changed);
  QUANTRAIN_CHECK_ERROR(load_changed([](onnx::Model& m) {
                          m.graph.nodes[4].inputs[0] = m.graph.nodes[0].outputs[0];
                        }),
                        DataError,
                        changed);
  QUANTRAIN_CHECK_ERROR(
      load_changed([](onnx::Model& m) { m.graph.outputs.pop_back(); }), DataError, changed);
  QUANTRAIN_CHECK_ERROR(
      load_changed([](onnx::Model& m) { metadata_of(m, "quantrain.hash")[0] ^= 1; }),
      DataError,
      changed);
  // The meaning of operators, an entry that comes twice, one that no exporter writes.
  QUANTRAIN_CHECK_ERROR(
      load_changed([](onnx::Model& m) { m.operator_sets[0].version = 13; }), DataError, changed);
  QUANTRAIN_CHECK_ERROR(
      load_changed([](onnx::Model& m) { m.metadata.push_back(m.metadata.front()); }),
      DataError,
      changed);
  QUANTRAIN_CHECK_ERROR(
      load_changed([](onnx::Model& m) { m.metadata.emplace_back("quantrain.other", "text"); }),
      DataError,
      changed);
  CHECK_NOTHROW(load_changed([](onnx::Model& m) { std::ranges::reverse(m.metadata); }));
}

TEST_CASE("metadata of an exported file are not trusted", "[quant][onnx]") {
  QUANTRAIN_CHECK_ERROR(
      load_changed([](onnx::Model& m) { m.metadata.clear(); }), DataError, "did not write it");
  const auto replace = [](const std::string& from, const std::string& to) {
    return [=](onnx::Model& m) {
      for (const char* key : {"quantrain.export", "quantrain.program"}) {
        std::string& text = metadata_of(m, key);
        const size_t at = text.find(from);
        if (at != std::string::npos) text.replace(at, from.size(), to);
      }
    };
  };
  CHECK_NOTHROW(load_changed(replace("\"form\"", "\"form\"")));
  // Files of early versions of 0.2 name steps instead of constants.
  QUANTRAIN_CHECK_ERROR(
      load_changed(replace("\"constant\":", "\"step\":")), DataError, "export it again");
  for (const auto& [from, to] : {std::pair{"\"form\":0", "\"form\":2"},
                                 {"\"format\":{", "\"format\":["},
                                 {"quantrain-integer", "something else"},
                                 {"conv/weight", "no weight"},
                                 {"conv/weight", "conv/bias"},
                                 {"\"order\":0", "\"order\":1"},
                                 {"\"constant\":0", "\"constant\":1"},
                                 {"\"bits\":4", "\"bits\":9"},
                                 {"\"I32\"", "\"F32\""},
                                 {"\"constants.1\":[", "\"constants.1\":[99999999999,"},
                                 {"\"constants.1\":[", "\"constants.1\":[7,"},
                                 {"\"values\":[", "\"values\":[7,"}}) {
    INFO(from << " becomes " << to);
    CHECK_THROWS_AS(load_changed(replace(from, to)), Error);
  }
}

TEST_CASE("an exported file cannot make its reader take far more memory than its size",
          "[quant][onnx]") {
  // The same weights for many constants.
  QUANTRAIN_CHECK_ERROR(
      load_changed([](onnx::Model& m) {
        m.graph.initializers.push_back(onnx::make_tensor(
            "large", onnx::ElementType::kInt8, {1000, 1000}, std::vector<uint8_t>(1000000)));
        std::string many;
        for (int constant = 100; constant < 110; ++constant) {
          many += "{\"constant\":" + std::to_string(constant) +
                  ",\"initializer\":\"large\",\"order\":1,\"bits\":8},";
        }
        std::string& text = metadata_of(m, "quantrain.export");
        text.insert(text.find("\"weights\":[") + 11, many);
      }),
      DataError,
      "the weights of too many constants");
}

TEST_CASE("an exported file of the fast form comes back as a prepared network", "[quant][onnx]") {
  const TemporaryFolder folder;
  std::vector<std::pair<Sequential, Shape>> nets;
  nets.emplace_back(mlp(), Shape{8, 12});
  nets.emplace_back(conv_net(), Shape{8, 8, 8, 1});
  for (auto& [net, batch] : nets) {
    prepare_qat(net, random_images(batch, 1), QConfig::int8());
    train_a_little(net, batch, 3);
    freeze(net);
    const IntegerModel model = convert(net, random_images(batch, 2));
    export_onnx(model.program(), folder / "net.onnx", {.form = OnnxForm::kQdq});
    QuantizedOnnx again = import_quantized_onnx(folder / "net.onnx");
    CHECK(again.report.is_complete());
    const IntegerModel converted = convert(again.network, again.network.example());
    const std::vector<uint8_t> codes = random_samples(model.program(), 50, 3);
    std::vector<int32_t> expected(50 * 4), actual(50 * 4);
    model.run_codes(codes, expected);
    converted.run_codes(codes, actual);
    CHECK(expected == actual);
  }
}

TEST_CASE("a written model is read as it was", "[quant][onnx]") {
  const onnx::Model model = onnx_model(integer::test::every_operation());
  const std::string bytes = onnx::model_bytes(model, "here");
  const auto* const first = reinterpret_cast<const uint8_t*>(bytes.data());
  const onnx::Model again = onnx::parse_model({first, bytes.size()}, "here");
  CHECK(onnx::model_bytes(again, "here") == bytes);
  CHECK(again.metadata == model.metadata);
  CHECK(again.producer_version == model.producer_version);

  onnx::Model wrong = model;
  wrong.metadata.emplace_back("name", "\xff");
  QUANTRAIN_CHECK_ERROR(onnx::model_bytes(wrong, "here"), ExportError, "not UTF-8");
  const TemporaryFolder folder;
  CHECK_THROWS_AS(onnx::write_model(folder / "wrong.onnx", wrong), ExportError);
  CHECK(folder.files() == 0);
}

}  // namespace quantrain::quant::test
