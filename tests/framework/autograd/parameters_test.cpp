#include "framework/autograd/parameters.hpp"

#include <cmath>

#include "framework/core/error.hpp"
#include "framework/io/safetensors.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {
namespace {

using test::TemporaryFolder;

std::vector<NamedState> example(float first) {
  return {{"conv.weight", Tensor::from({1, 2, 1, 1}, std::vector{first, first + 1})},
          {"conv.bias", Tensor::from({1}, std::vector{first + 2})}};
}

std::vector<float> values(const std::vector<NamedState>& state) {
  std::vector<float> all;
  for (const NamedState& entry : state) {
    all.insert(all.end(), entry.tensor.data(), entry.tensor.data() + entry.tensor.elements());
  }
  return all;
}

}  // namespace

TEST_CASE("constants are saved, and loading refuses a different value", "[autograd][parameters]") {
  const TemporaryFolder folder;
  std::vector<NamedState> saved = example(1.0f);
  saved[0].constant = true;
  save_parameters(folder / "a", saved);
  load_parameters(folder / "a", saved);
  std::vector<NamedState> other = example(2.0f);
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
  std::vector<NamedState> loaded = example(0.0f);
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
  std::vector<NamedState> own = example(7.0f);
  const std::vector<float> before = values(own);

  std::vector<NamedState> more = own;
  more.push_back({"fc.weight", Tensor::zeros({1})});
  QUANTRAIN_CHECK_ERROR(load_parameters(folder / "a", more), DataError, "lacks \"fc.weight\"");
  std::vector<NamedState> codes = own;
  auto bytes = std::make_shared<Codes>();
  bytes->bytes = Buffer<uint8_t>(own[0].tensor.elements());
  bytes->params = {{.bits = 8}, -1, {1.0f}, {0}};
  codes[0].tensor = Tensor::from_codes(own[0].tensor.shape(), bytes);
  QUANTRAIN_CHECK_ERROR(
      load_parameters(folder / "a", codes), DataError, "\"conv.weight\" does not hold floats");
  const std::vector<NamedState> fewer{own[0]};
  QUANTRAIN_CHECK_ERROR(load_parameters(folder / "a", fewer),
                        DataError,
                        "has \"conv.bias\", but no tensor here has this name");
  const std::vector<NamedState> reshaped{own[0], {"conv.bias", Tensor::zeros({1, 1})}};
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

TEST_CASE("integers are saved as int64, and loading checks their range", "[autograd][parameters]") {
  const TemporaryFolder folder;
  const auto state = [](int64_t value) {
    return std::vector<NamedState>{
        {"w", Tensor::zeros({1})},
        {"count", IntegerBuffer({2}, {.value = value, .least = 0, .most = kMostCount})},
        {"bits", IntegerBuffer({1}, {.value = 8}), true}};
  };
  save_parameters(folder / "a", state(kMostCount));
  CHECK(load_safetensors(folder / "a").at("count").dtype == DType::kI64);
  std::vector<NamedState> own = state(3);
  load_parameters(folder / "a", own);
  CHECK(own[1].integers.values()[0] == kMostCount);
  CHECK(own[1].integers.values()[1] == kMostCount);

  own = state(3);
  own[0].tensor.mutable_data()[0] = 5.0f;
  const auto refused = [&](const auto& replace, const std::string& text) {
    TensorFile file;
    const TensorFile saved = load_safetensors(folder / "a");
    file.metadata = saved.metadata;
    for (const TensorFile::Entry& entry : saved.entries()) {
      if (!replace(file, entry.name)) file.add(entry);
    }
    save_safetensors(folder / "b", file);
    QUANTRAIN_CHECK_ERROR(load_parameters(folder / "b", own), DataError, text);
    CHECK(own[0].tensor.item() == 5.0f);
    CHECK(own[1].integers.values()[1] == 3);
  };
  const auto count = [&]<class T>(const Shape& shape, std::vector<T> values) {
    return [shape, values](TensorFile& file, const std::string& name) {
      if (name == "count") file.add<T>(name, shape, values);
      return name == "count";
    };
  };
  refused(count(Shape{2}, std::vector<int64_t>{0, -1}),
          "\"count\" holds -1 at 1, expected 0 to 9007199254740992");
  refused(count(Shape{1}, std::vector<int64_t>{0}), "\"count\" has shape [1], expected [2]");
  refused(count(Shape{2}, std::vector<int32_t>{0, 0}), "\"count\" is I32, expected I64");
  for (const float bad : {0.5f, 0x1p25f, HUGE_VALF, std::nanf("")})
    refused(count(Shape{2}, std::vector<float>{0.0f, bad}), "expected a whole number of at most");
  refused(count(Shape{2}, std::vector<float>{0.0f, -1.0f}), "\"count\" holds -1 at 1, expected 0");
  refused(count(Shape{3}, std::vector<float>{0, 0, 0}), "\"count\" has shape [3], expected [2]");
  refused(
      [](TensorFile& file, const std::string& name) {
        if (name == "bits") file.add<int64_t>(name, {1}, std::vector<int64_t>{4});
        return name == "bits";
      },
      "\"bits\" has 4 at 0, but this network was made with 8");
}

TEST_CASE("integers of early files, which hold them as floats, are loaded",
          "[autograd][parameters]") {
  const TemporaryFolder folder;
  save_parameters(folder / "early",
                  std::vector<NamedState>{
                      {"phase", Tensor::full({1}, 2.0f)},
                      {"count", Tensor::from({2, 2}, std::vector<float>{5, 0, 7, 0x1p24f - 1})},
                      {"passes", Tensor::from({2}, std::vector<float>{1, 3})}});
  const std::vector<NamedState> state{{"phase", IntegerBuffer({1})},
                                      {"count", IntegerBuffer({2})},
                                      {"passes", IntegerBuffer(Shape{})}};
  load_parameters(folder / "early", state);
  CHECK(state[0].integers.item() == 2);
  CHECK(state[1].integers.values()[0] == 5);
  CHECK(state[1].integers.values()[1] == 7 + ((int64_t{1} << 48) - (int64_t{1} << 24)));
  CHECK(state[2].integers.item() == 1 + (int64_t{3} << 24));
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
  std::vector<NamedState> tensors = example(1.0f);
  tensors[1].name = "conv.weight";
  QUANTRAIN_CHECK_ERROR(
      save_parameters(folder / "a", tensors), DataError, "two entries are named \"conv.weight\"");
  CHECK(folder.files() == 0);
}

}  // namespace quantrain
