#include "quant/integer/integer_model.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include "framework/core/cpu.hpp"
#include "framework/core/error.hpp"
#include "quant/lowering/convert.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::quant {
namespace {

using test::branched_net;
using test::check_parity;
using test::mlp;
using test::random_images;
using test::train_a_little;

}  // namespace

TEST_CASE("a model runs on bytes and on floats, to integers, real logits and classes",
          "[quant][integer_model]") {
  Sequential net = mlp();
  const Tensor example = random_images({2, 12}, 1);
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 12}, 3);
  const IntegerModel model = convert(net, example);
  const int64_t n = 600;  // more than two chunks
  const Tensor images = random_images({n, 12}, 2);
  std::vector<uint8_t> bytes(static_cast<size_t>(images.elements()));
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(std::lround(images.data()[i] * 255.0f));
  const auto count = static_cast<size_t>(n * model.outputs());
  std::vector<int32_t> integers(count);
  std::vector<int32_t> from_floats(count);
  std::vector<float> logits(count);
  std::vector<int32_t> classes(static_cast<size_t>(n));
  model.run(n, bytes.data(), integers.data());
  model.run(n, images.data(), from_floats.data());
  model.run(n, bytes.data(), logits.data());
  model.classify(n, bytes.data(), classes.data());
  CHECK(integers == from_floats);
  for (size_t i = 0; i < count; ++i)
    CHECK(logits[i] == static_cast<float>(model.logit_scale() * integers[i]));
  for (size_t i = 0; i < classes.size(); ++i) {
    const auto row = integers.begin() + static_cast<std::ptrdiff_t>(i) * model.outputs();
    CHECK(classes[i] == std::max_element(row, row + model.outputs()) - row);
  }
  model.run(0, bytes.data(), integers.data());
  QUANTRAIN_CHECK_ERROR(model.run(-1, bytes.data(), integers.data()), ShapeError, "negative");
  const Tensor bad = Tensor::full({1, 12}, std::nanf(""));
  QUANTRAIN_CHECK_ERROR(model.run(1, bad.data(), integers.data()), DataError, "NaN");

  SECTION("from several threads at once") {
    std::vector<std::vector<int32_t>> results(4, std::vector<int32_t>(count));
    std::vector<std::thread> threads;
    for (auto& result : results)
      threads.emplace_back([&] { model.run(n, bytes.data(), result.data()); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& result : results) CHECK(result == integers);
  }
  SECTION("equally on every instruction set") {
    const Isa chosen = chosen_isa();
    for (const Isa isa : usable_isas()) {
      set_isa(isa);
      const IntegerModel again = convert(net, example);
      std::vector<int32_t> result(count);
      again.run(n, bytes.data(), result.data());
      INFO(isa_name(isa));
      CHECK((result == integers));
    }
    set_isa(chosen);
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(QUANTRAIN_SANITIZE_ADDRESS)
  SECTION("without taking memory from the system") {
    const int64_t before = pool::counters().system_allocations;
    for (int i = 0; i < 3; ++i) model.run(64, bytes.data(), integers.data());
    const int64_t warm = pool::counters().system_allocations;
    for (int i = 0; i < 10; ++i) model.run(64, bytes.data(), integers.data());
    CHECK(pool::counters().system_allocations == warm);
    CHECK(warm >= before);
  }
#endif
}

TEST_CASE("a saved model is the same model", "[quant][integer_model]") {
  const quantrain::test::TemporaryFolder folder;
  Sequential net = branched_net();
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  prepare_qat(net, example, QConfig::int4());
  train_a_little(net, {6, 8, 8, 1}, 2);
  const IntegerModel model = convert(net, example);
  const std::string path = folder.path() + "/model.safetensors";
  model.save(path);
  const IntegerModel loaded = IntegerModel::load(path);
  CHECK(loaded.size_bytes() == model.size_bytes());
  CHECK(loaded.logit_scale() == model.logit_scale());
  const Tensor images = random_images({9, 8, 8, 1}, 3);
  std::vector<int32_t> a(static_cast<size_t>(9 * model.outputs()));
  std::vector<int32_t> b(a.size());
  model.run(9, images.data(), a.data());
  loaded.run(9, images.data(), b.data());
  CHECK(a == b);
  check_parity(net, loaded, images);
  QUANTRAIN_CHECK_ERROR(model.save(folder.path() + "/no/such/folder"), DataError, "");
  QUANTRAIN_CHECK_ERROR(IntegerModel::load(folder.path() + "/none"), DataError, "");
}

}  // namespace quantrain::quant
