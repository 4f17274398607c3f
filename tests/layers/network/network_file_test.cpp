#include "layers/network/network_file.hpp"

#include <cmath>

#include "framework/core/error.hpp"
#include "framework/io/safetensors.hpp"
#include "layers/layers.hpp"
#include "layers/network/copy_network.hpp"
#include "layers/state.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

// A namespace of its own, because other tests have helpers of the same names.
namespace quantrain::network_file_tests {

using test::read_bytes;
using test::TemporaryFolder;
using test::values;

namespace {

Network file_network() {
  manual_seed(8);
  auto weight = Tensor::full({2, 3}, 0.5f);
  NetworkParts parts{
      .inputs = {{.name = "x",
                  .shape = {3},
                  .range = Range{0.0f, 1.0f},
                  .features = {{0.0f, 1.0f, 2.0f}, {1.0f, 2.0f, 3.0f}},
                  .feature_names = {"a", "b", "c"}}},
      .tensors = {{"one", Tensor::full({}, 1.0f)}, {"part.scale", Tensor::full({2}, 2.0f), true}},
      .steps = {{"part.fc", std::make_shared<Linear>(weight), {"x"}},
                {"twin", std::make_shared<Linear>(weight, Tensor::zeros({2})), {"x"}},
                {"part.mul", make_layer("mul", {}), {"part.fc", "part.scale"}},
                {"clamp", std::make_shared<Clamp>(-INFINITY, 6.0f), {"part.mul"}},
                {"drop", std::make_shared<Dropout>(0.5f), {"clamp"}},
                {"sum", std::make_shared<Add>(), {"drop", "twin", "clamp"}},
                {"sub", make_layer("sub", {}), {"sum", "one"}}},
      .outputs = {"sub", "twin"},
      .classes = {"no", "yes"},
      .listed = {"twin"},
      .metadata = {{"about", "a test"}}};
  Network net(std::move(parts));
  net.find("drop").eval();
  return net;
}

/// The file of file_network() with a text of its JSON replaced.
TensorFile replaced(const std::string& from, const std::string& to) {
  const TemporaryFolder folder;
  save_network(file_network(), folder / "net");
  TensorFile file = load_safetensors(folder / "net");
  std::string& json = file.metadata["network"];
  const size_t at = json.find(from);
  INFO(json);
  REQUIRE(at != std::string::npos);
  json.replace(at, from.size(), to);
  return file;
}

Network loaded(const TensorFile& file) {
  const TemporaryFolder folder;
  save_safetensors(folder / "net", file);
  return load_network(folder / "net");
}

}  // namespace

TEST_CASE("a file keeps everything that a network says", "[layers][network_file]") {
  const TemporaryFolder folder;
  Network net = file_network();
  net.find("drop").train();
  net(std::vector<Tensor>{Tensor::full({2, 3}, 0.25f)});  // dropout draws, and counts
  net.find("drop").eval();
  save_network(net, folder / "net");
  Network other = load_network(folder / "net");
  const NetworkInput& x = other.inputs()[0];
  CHECK(x.name == "x");
  CHECK(x.shape == std::vector<int64_t>{3});
  CHECK(x.range->max == 1.0f);
  CHECK(x.features == net.inputs()[0].features);
  CHECK(x.feature_names == std::vector<std::string>{"a", "b", "c"});
  CHECK(other.classes() == net.classes());
  CHECK(other.metadata().at("about") == "a test");
  CHECK(other.outputs() == net.outputs());
  CHECK_FALSE(other.find("drop").training());
  CHECK(other.training());
  const std::vector<NamedState> a = state(net), b = state(other);
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].name == b[i].name);
    CHECK(values(a[i]) == values(b[i]));
  }
  // Layers that shared a weight share it again, and a shared weight is stored once.
  CHECK(other.steps()[0].layer->parameters()[0].same_as(other.steps()[1].layer->parameters()[0]));
  CHECK(a[0].name == "twin.weight");
  other.find("drop").train();
  net.find("drop").train();
  const std::vector<Tensor> in{Tensor::full({2, 3}, 0.5f)};
  CHECK(values(other(in)[0]) == values(net(in)[0]));
}

TEST_CASE("a copy of a Network shares what the network shares, and nothing with it",
          "[layers][network_file]") {
  Network net = file_network();
  Network other = copy(net);
  CHECK(other.steps()[0].layer->parameters()[0].same_as(other.steps()[1].layer->parameters()[0]));
  for (const NamedState& mine : state(net)) {
    for (const NamedState& theirs : state(other)) CHECK_FALSE(mine.same_as(theirs));
  }
  CHECK(other.metadata() == net.metadata());
  CHECK(other.named_parameters()[0].name == net.named_parameters()[0].name);
  CHECK_FALSE(other.find("drop").training());
  const std::vector<Tensor> in{Tensor::full({2, 3}, 0.5f)};
  CHECK(values(other(in)[0]) == values(net(in)[0]));
}

TEST_CASE("a file that was cut or overwritten anywhere gives a typed error",
          "[layers][network_file]") {
  const TemporaryFolder folder;
  save_network(file_network(), folder / "net");
  std::vector<uint8_t> bytes = read_bytes(folder / "net");
  CHECK_NOTHROW(parse_network(bytes, "whole"));
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::span<const uint8_t> part(bytes.data(), size);
    if (size % 7 == 0 || size < 64 || size + 64 > bytes.size())
      CHECK_THROWS_AS(parse_network(part, "cut"), DataError);
  }
  int accepted = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const uint8_t flip : {uint8_t{0x01}, uint8_t{0x80}}) {
      if (flip == 0x80 && i % 4 != 0) continue;
      bytes[i] ^= flip;
      try {
        parse_network(bytes, "flipped");
        ++accepted;
      } catch (const Error&) {
      }
      bytes[i] ^= flip;
    }
  }
  CHECK(accepted > 0);  // the floats of weights, and names
  CHECK(accepted < static_cast<int>(bytes.size()));
}

TEST_CASE("a file that says what cannot be is refused by name", "[layers][network_file]") {
  const auto refuses = [](const char* message, const std::string& from, const std::string& to) {
    QUANTRAIN_CHECK_ERROR(loaded(replaced(from, to)), Error, message);
  };
  CHECK_NOTHROW(loaded(replaced("a", "a")));
  refuses("the unknown type \"Linar\"", "\"Linear\"", "\"Linar\"");
  refuses("which does not exist", "\"inputs\":[\"part.fc\"", "\"inputs\":[\"nothing\"");
  refuses("computed later", "\"inputs\":[\"part.fc\"", "\"inputs\":[\"sum\"");
  refuses("are named \"twin\"", "\"name\":\"clamp\"", "\"name\":\"twin\"");
  refuses("lacks the tensor \"other\"", "\"weight\":\"twin.weight\"", "\"weight\":\"other\"");
  refuses("does not fit weight", "\"bias\":\"twin.bias\"", "\"bias\":\"one\"");
  refuses("\"passes\" is floats", "\"passes\":\"drop.passes\"", "\"passes\":\"one\"");
  refuses("\"weight\" is integers", "\"weight\":\"twin.weight\"", "\"weight\":\"drop.passes\"");
  refuses("is \"drop.passes\", which holds integers",
          "\"tensor\":\"one\"",
          "\"tensor\":\"drop.passes\"");
  refuses("p must be in [0, 1)", "\"p\":0.5", "\"p\":1.5");
  refuses("\"p\" is not a number", "\"p\":0.5", "\"p\":1");
  refuses("\"p\" is null", "\"p\":0.5", "\"p\":null");
  refuses("\"p\" is missing", "\"p\":0.5,", "");
  refuses("\"slope\" is unknown", "\"p\":0.5,", "\"p\":0.5,\"slope\":1,");
  refuses("no finite number lies between", "\"high\":6.0", "\"high\":{\"real\":\"-inf\"}");
  refuses("\"high\"", "\"high\":6.0", "\"high\":{\"real\":\"nan\"}");
  refuses("reads nothing", "\"inputs\":[\"drop\",\"twin\",\"clamp\"]", "\"inputs\":[]");
  refuses("\"outputs\"", "\"outputs\":[\"sub\",\"twin\"],", "");
  refuses("output \"sib\" does not exist", "[\"sub\",\"twin\"]", "[\"sib\"]");
  refuses("`listed` names", "\"listed\":[\"twin\"]", "\"listed\":[\"x\"]");
  refuses("which is no parameter", "\"fixed\":[]", "\"fixed\":[\"one\"]");
  refuses("shape", "\"shape\":[3]", "\"shape\":[0]");
  refuses("shape", "\"shape\":[3]", "\"shape\":[1,1,1,1,1,1,1,1]");
  refuses("two ends", "\"range\":[0.0,1.0]", "\"range\":[0.0]");
  refuses("scale", "\"scales\":[1.0,2.0,3.0]", "\"scales\":[1.0,-2.0,3.0]");
  refuses("an empty part", "\"name\":\"clamp\"", "\"name\":\"\"");
  refuses("extra", "\"training\":true}", "\"training\":true,\"extra\":1}");
  refuses("the network", "{\"inputs\"", "{\"inputs");

  TensorFile file = replaced("a", "a");
  file.add<float>("left.over", Shape{1}, std::vector<float>{1.0f});
  QUANTRAIN_CHECK_ERROR(loaded(file), DataError, "\"left.over\"");
  file = replaced("a", "a");
  file.metadata["version"] = "2";
  QUANTRAIN_CHECK_ERROR(loaded(file), DataError, "version");
  file = replaced("a", "a");
  file.metadata["format"] = "quantrain";
  QUANTRAIN_CHECK_ERROR(loaded(file), DataError, "format");
  file = replaced("a", "a");
  file.metadata.erase("network");
  QUANTRAIN_CHECK_ERROR(loaded(file), DataError, "network");
}

TEST_CASE("counts of a file outside of their range are refused", "[layers][network_file]") {
  const TemporaryFolder folder;
  save_network(file_network(), folder / "net");
  const TensorFile file = load_safetensors(folder / "net");
  TensorFile changed;
  changed.metadata = file.metadata;
  for (TensorFile::Entry entry : file.entries()) {
    if (entry.name == "drop.passes") entry.bytes.assign(8, 0xff);
    changed.add(entry);
  }
  QUANTRAIN_CHECK_ERROR(loaded(changed), DataError, "drop.passes");
}

TEST_CASE("what a file cannot hold is refused before anything is written",
          "[layers][network_file]") {
  class Own : public Module {
   public:
    std::string_view type() const override { return "Own"; }

   protected:
    Tensor forward(const Tensor& x) override { return x; }
  };
  const TemporaryFolder folder;
  const Network net({.inputs = {{.name = "x"}},
                     .steps = {{"own", std::make_shared<Own>(), {"x"}}},
                     .outputs = {"own"}});
  QUANTRAIN_CHECK_ERROR(save_network(net, folder / "net"), GraphError, "register_layer<Own>");
  CHECK_THROWS_AS(copy(net), GraphError);
  Network other = file_network();
  other.metadata()["network"] = "mine";
  QUANTRAIN_CHECK_ERROR(save_network(other, folder / "net"), DataError, "reserved");
  CHECK(folder.files() == 0);
  CHECK_THROWS_AS(save_network(file_network(), folder / "no/net"), DataError);
  CHECK_THROWS_AS(load_network(folder / "nothing"), DataError);
  save_network(file_network(), folder / "net");
  Linear state_only(2, 2);
  CHECK_THROWS_AS(load(state_only, folder / "net"), DataError);
}

}  // namespace quantrain::network_file_tests
