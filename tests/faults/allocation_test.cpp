#include <cstring>
#include <sstream>
#include <string>

#include "framework/autograd/ops.hpp"
#include "framework/core/parallel.hpp"
#include "framework/data/csv.hpp"
#include "framework/data/dataset.hpp"
#include "framework/data/loader.hpp"
#include "framework/integer/integer_model.hpp"
#include "framework/optim/adam.hpp"
#include "framework/optim/clip.hpp"
#include "layers/layers.hpp"
#include "layers/training/checkpoint.hpp"
#include "layers/training/fit.hpp"
#include "quant/export/c99/export_c99.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/faults/allocations.hpp"
#include "tests/quant/networks.hpp"
#include "tests/state_bytes.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

// Memory may run out at any allocation. The call then throws an error or still returns its result;
// nothing leaks, and nothing is left half done.
namespace quantrain {

using test::bytes_of;
using test::fail_each_allocation;
using test::FailingAllocation;
using test::kPointStep;
using test::read_bytes;
using test::Survival;
using test::TemporaryFolder;

namespace {

void check_survival(const Survival& survival, int64_t least) {
  INFO(survival.points << " allocations failed, " << survival.errors << " with an error");
  CHECK(survival.fault == "");
  CHECK(survival.points >= least / kPointStep);
  CHECK(survival.errors >= least / 2 / kPointStep);
}

/// A prepared network after one forward and backward pass, with its data.
struct Prepared {
  Tensor x = quant::test::random_images({4, 8, 8, 1}, 1);
  std::vector<int32_t> labels{0, 1, 2, 3};
  Sequential net = make();

  static Sequential make() {
    manual_seed(1);
    return quant::test::conv_net();
  }
  Prepared() {
    quant::prepare_qat(net, x, quant::QConfig::int8());
    cross_entropy(net(x), labels).backward();
    net.zero_grad();
  }
};

// One thread, so that each run makes the same allocations.
struct OneThread {
  OneThread() { set_threads(1); }
  ~OneThread() { set_threads(0); }
};

}  // namespace

TEST_CASE("a model is loaded, run and saved with each allocation failing", "[faults][serial]") {
  const OneThread one_thread;
  const TemporaryFolder folder;
  Prepared p;
  const IntegerModel model = quant::convert(p.net, p.x);
  model.save(folder / "model", {{"who", "tests"}});
  const std::vector<uint8_t> file = read_bytes(folder / "model");
  const std::vector<float> pixels(p.x.data(), p.x.data() + p.x.elements());

  check_survival(fail_each_allocation([&] {
                   const IntegerModel loaded = IntegerModel::load(folder / "model");
                   std::ostringstream text;
                   text.exceptions(std::ios::badbit);  // otherwise truncated text counts as written
                   text << loaded.hash();
                   return text.str();
                 }),
                 200);
  check_survival(
      fail_each_allocation([&] { return std::to_string(IntegerModel::load(file).hash()); }), 200);
  check_survival(fail_each_allocation([&] {
                   std::vector<float> y(16);
                   model.run(std::span<const float>(pixels), std::span<float>(y));
                   return std::string(reinterpret_cast<const char*>(y.data()), 64);
                 }),
                 3);
  model.save(folder / "model", {{"who", "others"}});
  const std::vector<uint8_t> saved = read_bytes(folder / "model");
  check_survival(fail_each_allocation(
                     [&] {
                       model.save(folder / "model", {{"who", "others"}});
                       return std::string();
                     },
                     [&]() -> std::string {
                       if (folder.files() != 1) return "a temporary file is left";
                       const std::vector<uint8_t> now = read_bytes(folder / "model");
                       if (now != saved && now != file) return "the file is not whole";
                       test::write_bytes(folder / "model", file);
                       return {};
                     }),
                 50);
  check_survival(fail_each_allocation([&] {
                   const C99Sources sources = export_c99(model.program());
                   return sources.header + sources.source + sources.plan;
                 }),
                 1000);
}

TEST_CASE("an optimizer's step is done fully or not at all, whichever allocation fails",
          "[faults][serial]") {
  const OneThread one_thread;
  Prepared p;
  Adam adam(p.net.parameters());
  cross_entropy(p.net(p.x), p.labels).backward();
  adam.step();  // creates its state
  adam.zero_grad();
  const auto everything = [&] { return bytes_of(state(p.net)) + bytes_of(adam.state()); };

  // The forward and backward pass change only running statistics, ranges and gradients.
  check_survival(fail_each_allocation(
                     [&] {
                       cross_entropy(p.net(p.x), p.labels).backward();
                       clip_grad_norm(adam.parameters(), 1.0f);
                       adam.zero_grad();
                       return std::string();
                     },
                     [&] {
                       // Releases what the failed passes allocated.
                       cross_entropy(p.net(p.x), p.labels).backward();
                       adam.zero_grad();
                       return std::string();
                     }),
                 200);

  // A step of the optimizer changes everything or nothing.
  cross_entropy(p.net(p.x), p.labels).backward();
  std::vector<NamedState> kept;
  std::vector<NamedState> all = state(p.net);
  for (NamedState& entry : adam.state()) all.push_back(entry);
  for (const NamedState& entry : all) kept.push_back(entry.copy());
  const auto restore = [&] {
    for (size_t i = 0; i < all.size(); ++i) all[i].copy_values(kept[i]);
  };
  const std::string before = everything();
  adam.step();
  const std::string done = everything();
  REQUIRE(before != done);
  restore();
  CHECK(everything() == before);
  int calls = 0;
  check_survival(fail_each_allocation(
                     [&] {
                       adam.step();
                       if (++calls <= 2)
                         restore();  // no allocation fails in these, nor is one checked
                       return std::string();
                     },
                     [&]() -> std::string {
                       const std::string now = everything();
                       restore();
                       return now == before || now == done ? "" : "half of a step was done";
                     }),
                 10);
}

TEST_CASE("networks are made, prepared, calibrated and converted with each allocation failing",
          "[faults][serial]") {
  const OneThread one_thread;
  const Tensor x = quant::test::random_images({4, 12}, 1);
  check_survival(fail_each_allocation([&] {
                   manual_seed(1);
                   Sequential net = quant::test::mlp();
                   quant::prepare_ptq(net, x, quant::QConfig::int8());
                   quant::calibrate(net, x);
                   std::ostringstream text;
                   text.exceptions(std::ios::badbit);
                   text << quant::plan(net, x);
                   const IntegerModel model = quant::convert(net, x);
                   return text.str() + std::to_string(model.hash());
                 }),
                 1000);
}

TEST_CASE("states and checkpoints survive each failing allocation", "[faults][serial]") {
  const OneThread one_thread;
  const TemporaryFolder folder;
  Prepared p;
  save(p.net, folder / "state");
  const std::string before = bytes_of(state(p.net));
  Prepared other;
  check_survival(fail_each_allocation(
                     [&] {
                       load(other.net, folder / "state");
                       return bytes_of(state(other.net));
                     },
                     [&]() -> std::string {
                       return bytes_of(state(other.net)) == before ? "" : "another state";
                     }),
                 100);
  const Checkpoints checkpoints({.folder = folder / "checkpoints", .keep = 2});
  checkpoints.save(1, state(p.net), "{}");
  check_survival(fail_each_allocation([&] {
                   return checkpoints.load(state(other.net)).value() + bytes_of(state(other.net));
                 }),
                 100);
  int64_t step = 2;
  check_survival(fail_each_allocation(
                     [&] {
                       checkpoints.save(step++, state(p.net), "{}");
                       return std::string();
                     },
                     [&]() -> std::string {
                       if (!checkpoints.load(state(other.net))) return "there is no checkpoint";
                       checkpoints.save(step++, state(p.net), "{}");  // removes all but two
                       return {};
                     }),
                 100);
}

TEST_CASE("data are read and batched with each allocation failing", "[faults][serial]") {
  const OneThread one_thread;
  const TemporaryFolder folder;
  // Names that are longer than a std::string holds without memory of its own.
  std::string text = "temperature of the oil,pressure of the oil,label of the sample\n";
  for (int i = 0; i < 7; ++i) text += std::to_string(i) + ",0.5," + std::to_string(i % 2) + "\n";
  test::write_bytes(folder / "rows.csv",
                    std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  check_survival(fail_each_allocation([&] {
                   std::string all;
                   const CsvTable rows = read_csv(folder / "rows.csv");
                   for (const std::string& column : rows.columns()) all += column;
                   return all;
                 }),
                 20);
  const Dataset images({6, 2, 2, 1}, std::vector<uint8_t>(24, 7), {0, 1, 0, 1, 0, 1}, 2);
  check_survival(fail_each_allocation([&] {
                   std::string all;
                   DataLoader loader(images, {.batch = 2, .shuffle = true, .seed = 1});
                   for (const Batch& batch : loader) all += bytes_of(batch.input);
                   return all;
                 }),
                 20);
}

TEST_CASE("a fit that ran out of memory resumes from its checkpoint", "[faults][serial]") {
  const OneThread one_thread;
  const Dataset rows({6, 3}, std::vector<uint8_t>(18, 7), {0, 1, 0, 1, 0, 1}, 2);
  const auto run = [&](const std::string& folder) {
    manual_seed(1);
    Sequential net{Linear{3, 2}};
    Adam adam(net.parameters());
    DataLoader loader(rows, {.batch = 2});
    fit(net,
        adam,
        loader,
        [&](Batch& batch) { return cross_entropy(net(batch.input), batch.labels); },
        {.epochs = 2, .checkpoints = {.folder = folder, .every = 1, .resume = true}});
    return bytes_of(state(net));
  };
  const TemporaryFolder whole;
  const std::string expected = run(whole / "run");
  int64_t failed = 0;
  for (int64_t point = 0;; point += 29) {
    const TemporaryFolder folder;
    bool happened = false;
    try {
      const FailingAllocation failing(point);
      const std::string result = run(folder / "run");
      happened = failing.happened();
      CHECK(result == expected);
    } catch (const std::bad_alloc&) {
      happened = true;
    } catch (const Error&) {
      happened = true;
    }
    if (!happened) break;
    ++failed;
    CHECK(run(folder / "run") == expected);
  }
  CHECK(failed > 20);
}

}  // namespace quantrain
