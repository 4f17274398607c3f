#if QUANTRAIN_THREADS
#include <tbb/task_arena.h>
#endif

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/system/file.hpp"
#include "framework/data/dataset.hpp"
#include "framework/data/loader.hpp"
#include "framework/integer/integer_model.hpp"
#include "framework/optim/sgd.hpp"
#include "layers/layers.hpp"
#include "layers/state.hpp"
#include "layers/training/checkpoint.hpp"
#include "layers/training/fit.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/faults/system_calls.hpp"
#include "tests/quant/networks.hpp"
#include "tests/temporary_folder.hpp"

// Files are written whole or not at all, whichever system call fails.
namespace quantrain {

using test::CallFault;
using test::FailingCall;
using test::read_bytes;
using test::TemporaryFolder;

namespace {

std::map<std::string, std::vector<uint8_t>> files(const std::string& folder) {
  std::map<std::string, std::vector<uint8_t>> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    all[entry.path().filename().string()] = read_bytes(entry.path().string());
  return all;
}

/// `save` writes a file whose bytes depend on the value. The file is saved with 0, then overwritten
/// with 1 while system calls fail.
void check_failing_calls(const std::function<void(const std::string& path, int value)>& save) {
  std::map<std::string, std::vector<uint8_t>> old_files, new_files;
  {
    const TemporaryFolder folder;
    save(folder / "file", 0);
    old_files = files(folder.path());
    save(folder / "file", 1);
    new_files = files(folder.path());
  }
  REQUIRE(old_files != new_files);
  struct Mode {
    int number;
    CallFault fault = CallFault::kError;
    bool all_after = false;
  };
  std::map<std::string, int> failed;  // number of failed calls, by name
  std::map<std::string, int> refused;
  for (const Mode& mode : {Mode{EIO},
                           Mode{ENOSPC},
                           Mode{EINTR},
                           Mode{EACCES, CallFault::kError, true},
                           Mode{0, CallFault::kShortWrite}}) {
    for (int64_t point = 0;; ++point) {
      const TemporaryFolder folder;
      save(folder / "file", 0);
      std::string name;
      bool threw = false;
      {
        const FailingCall failing(point, mode.number, mode.fault, mode.all_after);
        try {
          save(folder / "file", 1);
        } catch (const DataError&) {
          threw = true;
        }
        name = failing.name();
      }
      if (name.empty()) {
        CHECK_FALSE(threw);
        break;
      }
      CAPTURE(point, name, mode.number, threw);
      ++failed[name];
      if (threw) ++refused[name];
      const auto left = files(folder.path());
      if (threw) {
        // If only closing fails, the file already has its new content.
        CHECK((left == old_files || (name == "close" && left == new_files)));
      } else {
        CHECK(left == new_files);
      }
      // The next save succeeds.
      CHECK_NOTHROW(save(folder / "file", 1));
      CHECK(files(folder.path()) == new_files);
    }
  }
  for (const char* name :
       {"open", "write", "fsync", "linkat", "rename", "close", "flock", "stat"}) {
    CAPTURE(name);
    CHECK(failed[name] >= 5);
  }
  for (const char* name : {"write", "fsync", "linkat", "rename"}) {
    CAPTURE(name);
    CHECK(refused[name] >= 2);
  }
}

}  // namespace

TEST_CASE("whichever system call of a write fails, the file is the old or the new one",
          "[faults][serial]") {
  check_failing_calls([](const std::string& path, int value) {
    const std::string text(1000, static_cast<char>('a' + value));
    write_file(path, text);
  });
}

TEST_CASE("whichever system call of an append fails, the file gets the whole text or none",
          "[faults][serial]") {
  std::map<std::string, int> refused;
  for (const bool is_new : {false, true}) {
    for (const auto& [number, fault] :
         {std::pair(EIO, CallFault::kError), std::pair(ENOSPC, CallFault::kShortWrite)}) {
      for (int64_t point = 0;; ++point) {
        const TemporaryFolder folder;
        if (!is_new) write_file(folder / "log", "old\n");
        const auto before = files(folder.path());
        std::string name;
        bool is_done = false;
        {
          const FailingCall failing(point, number, fault, true);
          is_done = system::append(folder / "log", "new\n");
          name = failing.name();
        }
        CAPTURE(is_new, number, point, name);
        const std::string whole = is_new ? "new\n" : "old\nnew\n";
        if (is_done) {
          CHECK(test::text_of(folder / "log") == whole);
        } else {
          CHECK(files(folder.path()) == before);
        }
        if (name.empty()) {
          CHECK(is_done);
          break;
        }
        if (!is_done) ++refused[name];
      }
    }
  }
  for (const char* name : {"open", "write", "fsync"}) {
    CAPTURE(name);
    CHECK(refused[name] >= 4);
  }
}

TEST_CASE("a call keeps its error even if closing a file fails afterwards", "[faults][serial]") {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("nowhere", folder / "link");
  const FailingCall failing(1, EIO);  // after open()
  CHECK(system::open_inside(folder.path(), {"link"}).is_link);
  CHECK(failing.name() == "close");
}

TEST_CASE("saving a model, state or checkpoint loses nothing, whichever system call fails",
          "[faults][serial]") {
  const TemporaryFolder examples;
  std::vector<IntegerModel> models;
  std::vector<std::vector<Tensor>> states;
  Sequential net = quant::test::mlp();
  for (int value = 0; value < 2; ++value) {
    manual_seed(static_cast<uint64_t>(value));
    Sequential one = quant::test::mlp();
    const Tensor x = quant::test::random_images({4, 12}, 1);
    quant::prepare_ptq(one, x, quant::QConfig::int8());
    quant::calibrate(one, x);
    models.push_back(quant::convert(one, x));
  }
  check_failing_calls(
      [&](const std::string& path, int value) { models[static_cast<size_t>(value)].save(path); });

  Tensor weight = net.parameters()[0];
  check_failing_calls([&](const std::string& path, int value) {
    weight.mutable_data()[0] = static_cast<float>(value);
    save(net, path);
  });
  check_failing_calls([&](const std::string& path, int value) {
    weight.mutable_data()[0] = static_cast<float>(value);
    const std::vector<NamedState> all = state(net);
    const std::string folder = std::filesystem::path(path).parent_path().string();
    Checkpoints({.folder = folder, .keep = 5, .resume = true, .run = "one"}).save(value, all, "{}");
  });
}

TEST_CASE("a checkpoint that cannot be opened or read is not damaged", "[faults][serial]") {
  const TemporaryFolder folder;
  manual_seed(1);
  Sequential net = quant::test::mlp();
  const std::vector<NamedState> all = state(net);
  const Checkpoints checkpoints({.folder = folder.path(), .resume = true, .skip_damaged = true});
  checkpoints.save(1, all, "one");
  checkpoints.save(2, all, "two");
  const auto before = files(folder.path());
  std::map<std::string, int> refused;
  for (const int number : {EACCES, EMFILE, EIO}) {
    for (int64_t point = 0;; ++point) {
      std::string position;
      std::string name;
      {
        const FailingCall failing(point, number);
        try {
          position = checkpoints.load(all).value_or("none");
        } catch (const DataError& error) {
          position = "two";
          const std::string text = error.what();
          CHECK(text.find("skip_damaged") == std::string::npos);
        }
        name = failing.name();
      }
      CAPTURE(number, point, name);
      CHECK(position == "two");
      CHECK(files(folder.path()) == before);
      if (name.empty()) break;
      ++refused[name];
    }
  }
  CHECK(refused["open"] == 3);
  CHECK(refused["fread"] == 3);
}

TEST_CASE("a training run loses nothing, whichever file call fails", "[faults][serial]") {
  set_threads(1);
  const Dataset rows({6, 3}, std::vector<uint8_t>(18, 7), {0, 1, 0, 1, 0, 1}, 2);
  const auto run = [&](const TemporaryFolder& folder) {
    manual_seed(1);
    Sequential net{Linear{3, 2}};
    Sgd optimizer(net.parameters(), {.learning_rate = 0.1f, .momentum = 0.9f});
    DataLoader loader(rows, {.batch = 2});
    fit(net,
        optimizer,
        loader,
        [&](Batch& batch) { return cross_entropy(net(batch.input), batch.labels); },
        {.epochs = 2,
         .checkpoints = {.folder = folder / "run",
                         .every = 1,
                         .keep = 2,
                         .resume = true,
                         .skip_damaged = true},
         .log = folder / "log"});
    std::vector<float> weights;
    for (const NamedState& entry : state(net)) {
      const Floats values = entry.tensor.floats();
      weights.insert(weights.end(), values.data(), values.data() + values.size());
    }
    return weights;
  };
  const TemporaryFolder whole;
  const std::vector<float> expected = run(whole);
  int64_t refused = 0;
  // scripts/prove faults makes all calls fail.
  constexpr int64_t kStep = 13;
  int64_t first = 0;
  for (const int number : {EACCES, EMFILE, ENOSPC, EIO}) {
    for (int64_t point = first++;; point += kStep) {
      const TemporaryFolder folder;
      std::string name;
      {
        std::vector<float> weights = expected;
        const FailingCall failing(point, number);
        try {
          weights = run(folder);
        } catch (const Error&) {
          ++refused;
        }
        name = failing.name();
        CHECK(weights == expected);
      }
      CAPTURE(number, point, name);
      if (name.empty()) break;
      CHECK(run(folder) == expected);
    }
  }
  CHECK(refused > 20);
  set_threads(0);
}

#if QUANTRAIN_THREADS
TEST_CASE("the system is asked for all threads, whatever arena the first loop is in",
          "[faults][serial]") {
  tbb::task_arena arena(1, 1);
  std::string name = "fread";  // limits of control groups are read before threads are started
  for (int64_t point = 0; name == "fread"; ++point) {
    arena.execute([&] {
      const FailingCall failing(point, EAGAIN, CallFault::kError, true);
      set_threads(0);
      name = failing.name();
    });
  }
  CHECK(threads() == 1);
  set_threads(0);
}

TEST_CASE("work goes on with the threads that the system allows", "[faults][serial]") {
  std::vector<uint8_t> pixels(200);
  std::iota(pixels.begin(), pixels.end(), uint8_t{0});
  const Dataset rows({50, 4}, pixels, std::vector<int32_t>(50, 0), 1);
  const auto epoch = [&] {
    std::vector<float> all;
    for (const Batch& batch : DataLoader(rows, {.batch = 8, .shuffle = true, .seed = 1})) {
      const Floats x = batch.input.floats();
      all.insert(all.end(), x.data(), x.data() + x.size());
    }
    return all;
  };
  const std::vector<float> expected = epoch();
  {
    const FailingCall failing(2, EAGAIN, CallFault::kError, true);
    set_threads(8);
  }
  CHECK(threads() == 3);
  std::atomic<int64_t> sum = 0;
  parallel_for(1000, 10, [&](int64_t begin, int64_t end) { sum += end - begin; });
  CHECK(sum == 1000);
  set_threads(1);
  std::vector<float> alone;
  {
    const FailingCall failing(0, EAGAIN, CallFault::kError, true);
    alone = epoch();
    CHECK(failing.name() == "pthread_create");
  }
  CHECK(alone == expected);
  set_threads(0);
}
#endif

}  // namespace quantrain
