#include "layers/state.hpp"

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/io/safetensors.hpp"
#include "layers/layers.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

/// A path in a new folder, which is removed with this object.
class TemporaryFile {
 public:
  TemporaryFile() {
    static int count = 0;
    folder_ = std::filesystem::temp_directory_path() /
              ("quantrain_state_" + std::to_string(reinterpret_cast<uintptr_t>(this)) + '_' +
               std::to_string(count++));
    std::filesystem::create_directories(folder_);
  }
  ~TemporaryFile() { std::filesystem::remove_all(folder_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return (folder_ / "net.safetensors").string(); }

 private:
  std::filesystem::path folder_;
};

Sequential make_net(uint64_t seed) {
  manual_seed(seed);
  return Sequential{Conv2d{1, 2}, BatchNorm2d{2}, Flatten{}, Linear{8, 3}};
}

std::vector<float> values_of_state(const Module& net) {
  std::vector<float> all;
  for (const NamedState& entry : state(net)) {
    const std::vector<float> some = test::values(entry);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace

TEST_CASE("a saved state loads into a module of the same structure, bit for bit",
          "[layers][state]") {
  Sequential net = make_net(1);
  net(Tensor::full({4, 4, 4, 1}, 0.5f));  // changes the running statistics
  const TemporaryFile file;
  save(net, file.path());
  Sequential other = make_net(2);
  CHECK(values_of_state(other) != values_of_state(net));
  load(other, file.path());
  CHECK(values_of_state(other) == values_of_state(net));
  save(net, file.path(), {{"epoch", "3"}});
  CHECK(load(other, file.path()) == std::map<std::string, std::string>{{"epoch", "3"}});
}

TEST_CASE("weights of Conv1d are saved and loaded with their own shape", "[layers][state]") {
  const auto make = [] { return Sequential{Conv1d{2, 5, {.kernel = 4}}, BatchNorm1d{5}}; };
  Sequential net = make();
  CHECK(net.find("0").parameters()[0].shape() == Shape{5, 4, 2});
  const TemporaryFile file;
  save(net, file.path());
  Sequential other = make();
  CHECK(values_of_state(other) != values_of_state(net));
  load(other, file.path());
  CHECK(values_of_state(other) == values_of_state(net));
  Sequential of_images{Conv2d{2, 5, {.kernel = {1, 4}}}, BatchNorm2d{5}};
  QUANTRAIN_CHECK_ERROR(load(of_images, file.path()), DataError, "0.weight");
}

TEST_CASE("a file of another structure is refused and changes nothing", "[layers][state]") {
  const TemporaryFile file;
  save(make_net(1), file.path());
  Sequential wider{Conv2d{1, 3}, BatchNorm2d{3}, Flatten{}, Linear{12, 3}};
  const std::vector<float> before = values_of_state(wider);
  QUANTRAIN_CHECK_ERROR(load(wider, file.path()), DataError, "0.weight");
  CHECK(values_of_state(wider) == before);
  Sequential longer{Conv2d{1, 2}, BatchNorm2d{2}, Flatten{}, Linear{8, 3}, Linear{3, 3}};
  QUANTRAIN_CHECK_ERROR(load(longer, file.path()), DataError, "4.weight");
  Sequential shorter{Conv2d{1, 2}, BatchNorm2d{2}};
  QUANTRAIN_CHECK_ERROR(load(shorter, file.path()), DataError, "3.");
}

TEST_CASE("files that cannot be read or written are errors that name them", "[layers][state]") {
  const TemporaryFile file;
  Sequential net = make_net(1);
  QUANTRAIN_CHECK_ERROR(load(net, file.path()), DataError, "net.safetensors");
  QUANTRAIN_CHECK_ERROR(save(net, file.path() + "/below"), DataError, "net.safetensors");
  save(net, file.path());
  std::filesystem::resize_file(file.path(), std::filesystem::file_size(file.path()) - 1);
  QUANTRAIN_CHECK_ERROR(load(net, file.path()), DataError, "net.safetensors");
}

TEST_CASE("a file of PyTorch is refused with the way to read it", "[layers][state]") {
  const TemporaryFile file;
  Sequential net = make_net(1);
  const std::vector<float> before = values_of_state(net);
  TensorFile foreign;
  foreign.add({"0.weight", DType::kF32, Shape{1}, {0, 0, 0, 0}});
  for (const bool pt : {false, true}) {
    if (pt) foreign.metadata["format"] = "pt";  // as safetensors.torch.save_file() writes
    save_safetensors(file.path(), foreign);
    QUANTRAIN_CHECK_ERROR(
        load(net, file.path()), DataError, "read it with load_pytorch(net, example, path)");
    QUANTRAIN_CHECK_ERROR(load(net, file.path()), DataError, "docs/guide/weights.md");
  }
  // A file of quantrain in another layout keeps its own message.
  foreign.metadata["layout"] = "NCHW/OIHW";
  save_safetensors(file.path(), foreign);
  QUANTRAIN_CHECK_ERROR(load(net, file.path()), DataError, "layout is \"NCHW/OIHW\"");
  // torch.save() writes a zip archive.
  const std::string zip = std::string("PK\3\4") + std::string(100, 'x');
  write_file(file.path(), zip);
  QUANTRAIN_CHECK_ERROR(load(net, file.path()), DataError, "safetensors.torch.save_file");
  write_file(file.path(), std::string(100, 'x'));
  QUANTRAIN_CHECK_ERROR(load(net, file.path()), DataError, file.path());
  CHECK(values_of_state(net) == before);
}

TEST_CASE("dropout continues from a saved state as if it had not stopped", "[layers][state]") {
  const TemporaryFile file;
  const Tensor ones = Tensor::full({1000}, 1.0f);
  const auto make = [] {
    manual_seed(1);
    return Sequential{Dropout{0.5f}};
  };
  const auto run = [&](Sequential& net) {
    const Tensor y = net(ones);
    return std::vector<float>(y.data(), y.data() + 1000);
  };
  for (const int64_t passes : {int64_t{0}, (int64_t{7} << 24) - 1}) {
    Sequential whole = make();
    NamedState counter = state(whole)[0];
    CHECK(counter.name == "0.passes");
    counter.integers.fill(passes);
    const std::vector<float> first = run(whole);
    save(whole, file.path());
    const std::vector<float> second = run(whole);
    const std::vector<float> third = run(whole);
    CHECK(first != second);
    CHECK(second != third);
    Sequential resumed = make();
    load(resumed, file.path());
    CHECK(run(resumed) == second);
    CHECK(run(resumed) == third);
    CHECK(values_of_state(resumed) == values_of_state(whole));
  }
}

TEST_CASE("copy_state copies parameters and buffers between equal structures only",
          "[layers][state]") {
  Sequential net = make_net(1);
  net(Tensor::full({4, 4, 4, 1}, 0.5f));
  Sequential other = make_net(2);
  copy_state(net, other);
  CHECK(values_of_state(other) == values_of_state(net));
  CHECK_FALSE(state(net)[0].tensor.same_as(state(other)[0].tensor));
  Sequential wider{Conv2d{1, 3}, BatchNorm2d{3}, Flatten{}, Linear{8, 3}};
  QUANTRAIN_CHECK_ERROR(copy_state(net, wider), ShapeError, "\"0.weight\" has floats [2, 3, 3, 1]");
  Sequential shorter{Conv2d{1, 2}};
  QUANTRAIN_CHECK_ERROR(copy_state(net, shorter), GraphError, "the modules differ at \"1.weight\"");
  QUANTRAIN_CHECK_ERROR(copy_state(shorter, net), GraphError, "the modules differ at \"1.weight\"");
  Sequential named;
  named.add("first", Linear{2, 2});
  Sequential unnamed{Linear{2, 2}};
  QUANTRAIN_CHECK_ERROR(
      copy_state(named, unnamed), GraphError, "the modules differ at \"first.weight\"");
}

}  // namespace quantrain
