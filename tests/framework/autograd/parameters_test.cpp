#include "framework/autograd/parameters.hpp"

#include "framework/core/error.hpp"
#include "framework/io/safetensors.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {
namespace {

using test::TemporaryFolder;

std::vector<NamedTensor> example(float first) {
  return {{"conv.weight", Tensor::from({1, 2, 1, 1}, std::vector{first, first + 1})},
          {"conv.bias", Tensor::from({1}, std::vector{first + 2})}};
}

std::vector<float> values(const std::vector<NamedTensor>& tensors) {
  std::vector<float> all;
  for (const NamedTensor& entry : tensors) {
    all.insert(all.end(), entry.tensor.data(), entry.tensor.data() + entry.tensor.elements());
  }
  return all;
}

}  // namespace

TEST_CASE("constants are saved, and loading refuses a different value", "[autograd][parameters]") {
  const TemporaryFolder folder;
  std::vector<NamedTensor> saved = example(1.0f);
  saved[0].constant = true;
  save_parameters(folder / "a", saved);
  load_parameters(folder / "a", saved);
  std::vector<NamedTensor> other = example(2.0f);
  other[0].constant = true;
  const std::vector<float> before = values(other);
  QUANTRAIN_CHECK_ERROR(load_parameters(folder / "a", other),
                        DataError,
                        "\"conv.weight\" has 1 at 0, but this network was made with 2: make the "
                        "network in the same way as the one that was saved");
  CHECK(values(other) == before);
  other[0].constant = false;
  load_parameters(folder / "a", other);
  CHECK(values(other) == values(saved));
}

TEST_CASE("saved parameters load unchanged, in any order", "[autograd][parameters]") {
  const TemporaryFolder folder;
  save_parameters(folder / "a", example(1.0f), {{"epoch", "3"}});
  std::vector<NamedTensor> loaded = example(0.0f);
  std::swap(loaded[0], loaded[1]);
  const uint64_t version = loaded[0].tensor.version();
  load_parameters(folder / "a", loaded);
  CHECK(values(loaded) == std::vector<float>{3.0f, 1.0f, 2.0f});
  CHECK(loaded[0].tensor.version() > version);
  CHECK(load_safetensors(folder / "a").metadata_at("epoch") == "3");
  CHECK(load_safetensors(folder / "a").metadata_at("layout") == "NHWC/OHWI");
}

TEST_CASE("if any parameter does not fit, loading changes nothing", "[autograd][parameters]") {
  const TemporaryFolder folder;
  save_parameters(folder / "a", example(1.0f));
  std::vector<NamedTensor> own = example(7.0f);
  const std::vector<float> before = values(own);

  std::vector<NamedTensor> more = own;
  more.push_back({"fc.weight", Tensor::zeros({1})});
  QUANTRAIN_CHECK_ERROR(load_parameters(folder / "a", more), DataError, "lacks \"fc.weight\"");
  std::vector<NamedTensor> codes = own;
  auto bytes = std::make_shared<Codes>();
  bytes->bytes = Buffer<uint8_t>(own[0].tensor.elements());
  bytes->params = {{.bits = 8}, -1, {1.0f}, {0}};
  codes[0].tensor = Tensor::from_codes(own[0].tensor.shape(), bytes);
  QUANTRAIN_CHECK_ERROR(
      load_parameters(folder / "a", codes), DataError, "\"conv.weight\" does not hold floats");
  const std::vector<NamedTensor> fewer{own[0]};
  QUANTRAIN_CHECK_ERROR(load_parameters(folder / "a", fewer),
                        DataError,
                        "has \"conv.bias\", but no tensor here has this name");
  const std::vector<NamedTensor> reshaped{own[0], {"conv.bias", Tensor::zeros({1, 1})}};
  QUANTRAIN_CHECK_ERROR(load_parameters(folder / "a", reshaped),
                        DataError,
                        "\"conv.bias\" has shape [1], expected [1, 1]");

  TensorFile file = load_safetensors(folder / "a");
  TensorFile integers;
  integers.metadata = file.metadata;
  integers.add(file.at("conv.weight"));
  integers.add<int32_t>("conv.bias", {1}, std::vector<int32_t>{1});
  save_safetensors(folder / "b", integers);
  QUANTRAIN_CHECK_ERROR(
      load_parameters(folder / "b", own), DataError, "\"conv.bias\" is I32, expected F32");

  CHECK(values(own) == before);
}

TEST_CASE("a file in another layout, format or version is refused", "[autograd][parameters]") {
  const TemporaryFolder folder;
  save_parameters(folder / "a", example(1.0f));
  const auto check_refused = [&](const char* key, const char* value, const char* text) {
    TensorFile file = load_safetensors(folder / "a");
    file.metadata[key] = value;
    if (*value == '\0') file.metadata.erase(key);
    save_safetensors(folder / "b", file);
    QUANTRAIN_CHECK_ERROR(load_parameters(folder / "b", example(0.0f)), DataError, text);
  };
  check_refused("layout", "NCHW/OIHW", "layout is \"NCHW/OIHW\", expected \"NHWC/OHWI\"");
  check_refused("layout", "", "does not say its layout; expected \"NHWC/OHWI\"");
  check_refused("format", "pt", "format is \"pt\", expected \"quantrain\"");
  check_refused("version", "2", "version is \"2\", expected \"1\"");
}

TEST_CASE("the caller cannot set the metadata that describes the file", "[autograd][parameters]") {
  const TemporaryFolder folder;
  for (const char* key : {"format", "version", "layout"}) {
    QUANTRAIN_CHECK_ERROR(save_parameters(folder / "a", example(1.0f), {{key, "7"}}),
                          DataError,
                          '"' + std::string(key) + "\" is reserved for the file");
  }
  CHECK(folder.files() == 0);
}

TEST_CASE("two parameters with the same name are refused", "[autograd][parameters]") {
  const TemporaryFolder folder;
  std::vector<NamedTensor> tensors = example(1.0f);
  tensors[1].name = "conv.weight";
  QUANTRAIN_CHECK_ERROR(
      save_parameters(folder / "a", tensors), DataError, "two entries are named \"conv.weight\"");
  CHECK(folder.files() == 0);
}

}  // namespace quantrain
