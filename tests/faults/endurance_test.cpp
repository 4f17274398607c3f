#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "framework/core/parallel.hpp"
#include "framework/core/random.hpp"
#include "framework/integer/integer_model.hpp"
#include "layers/layers.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

// Many kills, loads and forks. This takes minutes; scripts/prove endurance runs it.
namespace quantrain {
namespace {

using test::TemporaryFolder;

/// Writes two models and two states of one network in turn, for ever.
struct Writer {
  std::vector<IntegerModel> models;
  Sequential net = quant::test::mlp();
  std::vector<float> weights[2];

  Writer() {
    for (uint64_t seed = 0; seed < 2; ++seed) {
      manual_seed(seed);
      Sequential one = quant::test::mlp();
      weights[seed] = test::values(one.parameters()[0]);
      const Tensor x = quant::test::random_images({4, 12}, 1);
      quant::prepare_ptq(one, x, quant::QConfig::int8());
      quant::calibrate(one, x);
      models.push_back(quant::convert(one, x));
    }
  }
  void write(const TemporaryFolder& folder, size_t which) {
    models[which].save(folder / "model");
    Tensor weight = net.parameters()[0];
    std::copy(weights[which].begin(), weights[which].end(), weight.mutable_data());
    save(net, folder / "state");
  }
  [[noreturn]] void write_for_ever(const TemporaryFolder& folder) {
    for (size_t i = 0;; ++i) write(folder, i % 2);
  }
  bool model_is_whole(const TemporaryFolder& folder) const {
    const uint64_t hash = IntegerModel::load(folder / "model").hash();
    return hash == models[0].hash() || hash == models[1].hash();
  }
  bool state_is_whole(const TemporaryFolder& folder) const {
    Sequential loaded = quant::test::mlp();
    load(loaded, folder / "state");
    const std::vector<float> values = test::values(loaded.parameters()[0]);
    return values == weights[0] || values == weights[1];
  }
};

/// Starts a process that runs f until it is killed, or until f returns.
template <class F>
pid_t start(const F& f) {
  const pid_t process = ::fork();
  if (process != 0) return process;
  try {
    f();
  } catch (...) {
    ::_exit(1);
  }
  ::_exit(0);
}

int wait_for(pid_t process) {
  int status = 0;
  REQUIRE(::waitpid(process, &status, 0) == process);
  return status;
}

}  // namespace

TEST_CASE("files stay whole when 500 processes are killed during saves", "[.endurance]") {
  Writer writer;
  const TemporaryFolder folder;
  writer.write(folder, 0);
  Random random(1);
  int64_t left_over = 0;
  for (int i = 0; i < 500; ++i) {
    const pid_t process = start([&] { writer.write_for_ever(folder); });
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(20000)));
    ::kill(process, SIGKILL);
    CHECK(WIFSIGNALED(wait_for(process)));
    REQUIRE(writer.model_is_whole(folder));
    REQUIRE(writer.state_is_whole(folder));
    left_over = std::max(left_over, folder.files() - 2);
  }
  CHECK(left_over <= 2);  // from kills during a rename; the next save removes them
  writer.write(folder, 1);
  CHECK(folder.files() == 2);
}

TEST_CASE("each of 100,000 loads reads a whole file while two processes save", "[.endurance]") {
  Writer writer;
  const TemporaryFolder folder;
  writer.write(folder, 0);
  const pid_t savers[] = {start([&] { writer.write_for_ever(folder); }),
                          start([&] { writer.write_for_ever(folder); })};
  int64_t whole = 0;
  for (int i = 0; i < 50000; ++i) {
    whole += writer.model_is_whole(folder) ? 1 : 0;
    whole += writer.state_is_whole(folder) ? 1 : 0;
  }
  CHECK(whole == 100000);
  for (const pid_t saver : savers) {
    CHECK(::waitpid(saver, nullptr, WNOHANG) == 0);  // still running
    ::kill(saver, SIGKILL);
    wait_for(saver);
  }
}

TEST_CASE("200 processes forked beside busy threads classify correctly", "[.endurance]") {
  Writer writer;
  std::atomic<bool> busy{true};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (busy) parallel_for(1000, 10, [](int64_t, int64_t) {});
    });
  }
  const Tensor x = quant::test::random_images({64, 12}, 2);
  const std::vector<float> samples(x.data(), x.data() + x.elements());
  std::vector<int32_t> expected(64);
  writer.models[0].classify(std::span<const float>(samples), expected);
  int64_t right = 0;
  for (int i = 0; i < 200; ++i) {
    const pid_t process = start([&] {
      ::alarm(30);
      std::vector<int32_t> classes(64);
      writer.models[0].classify(std::span<const float>(samples), classes);
      if (classes != expected) ::_exit(2);
    });
    right += wait_for(process) == 0 ? 1 : 0;
  }
  busy = false;
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 200);
}

}  // namespace quantrain
