#include <functional>
#include <string>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/io/safetensors.hpp"
#include "quant/integer/integer_model.hpp"
#include "quant/integer/quantized_rescale.hpp"
#include "quant/lowering/convert.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/temporary_folder.hpp"

// A file of a model that was tampered with: each an error, none a crash.
namespace quantrain::quant::test {
namespace {

class SavedModel {
 public:
  SavedModel() {
    Sequential net = conv_net();
    const Tensor example = random_images({2, 8, 8, 1}, 1);
    prepare_qat(net, example, QConfig::int4());
    train_a_little(net, {6, 8, 8, 1}, 1);
    convert(net, example).save(path());
  }
  std::string path() const { return folder_ / "model.safetensors"; }

  /// Loads the model after the file's content was changed.
  void load_changed(const std::function<void(TensorFile&)>& change) const {
    TensorFile file = load_safetensors(path());
    change(file);
    const std::string changed = folder_ / "changed.safetensors";
    save_safetensors(changed, file);
    IntegerModel::load(changed);
  }
  void load_replaced(const std::string& from, const std::string& to) const {
    load_changed([&](TensorFile& file) {
      std::string& network = file.metadata["network"];
      const size_t at = network.find(from);
      REQUIRE(at != std::string::npos);
      network.replace(at, from.size(), to);
    });
  }
  /// Without one tensor, or with another in its place.
  void load_with(const std::string& name, const std::function<void(TensorFile&)>& add) const {
    load_changed([&](TensorFile& file) {
      TensorFile copy;
      copy.metadata = file.metadata;
      for (const TensorFile::Entry& entry : file.entries()) {
        if (entry.name != name) copy.add(entry);
      }
      add(copy);
      file = std::move(copy);
    });
  }

 private:
  quantrain::test::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a model's file that was tampered with is refused", "[quant][integer_model]") {
  const SavedModel model;
  CHECK_NOTHROW(IntegerModel::load(model.path()));

  SECTION("truncated") {
    std::vector<uint8_t> bytes = quantrain::test::read_bytes(model.path());
    const quantrain::test::TemporaryFolder folder;
    for (const size_t size : {size_t{0}, size_t{7}, size_t{100}, bytes.size() - 1}) {
      const std::vector<uint8_t> part(bytes.begin(),
                                      bytes.begin() + static_cast<std::ptrdiff_t>(size));
      quantrain::test::write_bytes(folder / "part", part);
      CHECK_THROWS_AS(IntegerModel::load(folder / "part"), DataError);
    }
  }
  SECTION("another format, version or layout") {
    for (const char* key : {"format", "version", "layout"}) {
      CHECK_THROWS_AS(model.load_changed([&](TensorFile& file) {
        REQUIRE(file.metadata.count(key) == 1);
        file.metadata[key] = "other";
      }),
                      DataError);
    }
  }
  SECTION("a network that is no JSON, or lacks members") {
    CHECK_THROWS_AS(model.load_changed([](TensorFile& file) { file.metadata["network"] = "{"; }),
                    DataError);
    CHECK_THROWS_AS(model.load_changed([](TensorFile& file) { file.metadata["network"] = "{}"; }),
                    Error);
    CHECK_THROWS_AS(model.load_changed([](TensorFile& file) { file.metadata.erase("network"); }),
                    DataError);
    CHECK_THROWS_AS(model.load_replaced("\"attributes\"", "\"other\""), DataError);
    CHECK_THROWS_AS(model.load_replaced("\"x_scale\":", "\"x_size\":"), Error);
  }
  SECTION("unknown layers, impossible numbers") {
    QUANTRAIN_CHECK_ERROR(model.load_replaced("quantized_conv2d", "quantized_magic"),
                          DataError,
                          "unknown type of layer");
    QUANTRAIN_CHECK_ERROR(
        model.load_replaced("\"inputs\":[0]", "\"inputs\":[5]"), GraphError, "no layer wrote");
    QUANTRAIN_CHECK_ERROR(
        model.load_replaced("\"stride\":[1,1]", "\"stride\":[0,1]"), ShapeError, "extent 0");
    QUANTRAIN_CHECK_ERROR(
        model.load_replaced("\"image\":[8,8,1]", "\"image\":[9,8,1]"), GraphError, "has shape");
    QUANTRAIN_CHECK_ERROR(model.load_replaced("\"activation\":\"relu\"", "\"activation\":\"gelu\""),
                          DataError,
                          "gelu");
    QUANTRAIN_CHECK_ERROR(
        model.load_replaced("\"output\":6", "\"output\":3"), GraphError, "that of the last layer");
    QUANTRAIN_CHECK_ERROR(model.load_replaced("\"requantize\":1", "\"requantize\":0"),
                          GraphError,
                          "gives accumulators, and is not the output");
    QUANTRAIN_CHECK_ERROR(model.load_replaced("\"padding\":[1,1]", "\"padding\":[1048576,1048576]"),
                          ShapeError,
                          "has more than 1073741824 elements");
    QUANTRAIN_CHECK_ERROR(model.load_replaced("\"y_bits\":4", "\"y_bits\":17"), QuantError, "bits");
  }
  SECTION("tensors that are missing, of another type, or too much") {
    QUANTRAIN_CHECK_ERROR(
        model.load_with("0.weight", [](TensorFile&) {}), DataError, "tensor \"weight\" is missing");
    QUANTRAIN_CHECK_ERROR(model.load_with("0.weight",
                                          [](TensorFile& file) {
                                            file.add<int32_t>(
                                                "0.weight", {54}, std::vector<int32_t>(54));
                                          }),
                          DataError,
                          "has another type");
    QUANTRAIN_CHECK_ERROR(model.load_with("0.weight",
                                          [](TensorFile& file) {
                                            file.add<int8_t>(
                                                "0.weight", {54}, std::vector<int8_t>(54, 8));
                                          }),
                          DataError,
                          "has not 4 bits");
    QUANTRAIN_CHECK_ERROR(model.load_with("none",
                                          [](TensorFile& file) {
                                            file.add<int8_t>("stray", {1}, std::vector<int8_t>(1));
                                          }),
                          DataError,
                          "belongs to no layer");
    QUANTRAIN_CHECK_ERROR(
        model.load_with(
            "none",
            [](TensorFile& file) { file.add<int8_t>("99.weight", {1}, std::vector<int8_t>(1)); }),
        DataError,
        "layer 99");
  }
}

TEST_CASE("a model whose names are not UTF-8 is not saved", "[quant][model_file]") {
  const quantrain::test::TemporaryFolder folder;
  const QParams params{{.bits = 8}, -1, {0.5f}, {0}};
  IntegerModel::Parts parts;
  parts.input_shape = {2};
  parts.input_params = params;
  parts.layers.push_back(
      {std::make_shared<QuantizedFlatten>("caf\xe9", QuantizedFlatten::Spec{{2}, {2}, params}),
       {0},
       1,
       0});
  parts.output = 1;
  const IntegerModel model(std::move(parts));
  QUANTRAIN_CHECK_ERROR(
      model.save(folder / "model"), DataError, "a layer's name cannot be written as JSON");
}

}  // namespace quantrain::quant::test
