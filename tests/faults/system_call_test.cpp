#include <cerrno>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/integer/integer_model.hpp"
#include "layers/layers.hpp"
#include "layers/training/checkpoint.hpp"
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
    Checkpoints({.folder = folder, .keep = 5, .resume = true}).save(value, all, "{}");
  });
}

}  // namespace quantrain
