#include "layers/training/checkpoint.hpp"

#include <filesystem>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/hash.hpp"
#include "framework/core/random.hpp"
#include "framework/io/safetensors.hpp"
#include "tests/catch.hpp"
#include "tests/far_folder.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace quantrain {

using test::read_bytes;
using test::TemporaryFolder;
using test::values;
using test::write_bytes;

namespace {

std::vector<NamedState> some_tensors(float value) {
  return {{"weight", Tensor::full({3, 2}, value)}, {"bias", Tensor::full({2}, 2.0f * value)}};
}

Checkpoints resuming(const std::string& folder) {
  return Checkpoints({.folder = folder, .resume = true, .configuration = "a run"});
}

}  // namespace

TEST_CASE("the last checkpoint is loaded, and the last few are kept", "[layers][checkpoint]") {
  const TemporaryFolder folder;
  const Checkpoints checkpoints(
      {.folder = folder / "new/run", .keep = 2, .configuration = "a run"});
  CHECK_FALSE(checkpoints.load(some_tensors(0.0f)).has_value());
  for (int step = 1; step <= 4; ++step)
    checkpoints.save(step, some_tensors(static_cast<float>(step)), "at " + std::to_string(step));
  CHECK(std::filesystem::exists(folder / "new/run/step-000000000003.safetensors"));
  CHECK(std::filesystem::exists(folder / "new/run/step-000000000004.safetensors"));
  CHECK_FALSE(std::filesystem::exists(folder / "new/run/step-000000000002.safetensors"));
  // Other files, some of them with names that look like a checkpoint's.
  for (const char* name : {"notes.txt",
                           "step-7.txt",
                           "7.safetensors",
                           "step-seven.safetensors",
                           "step-7x.safetensors",
                           "step--7.safetensors",
                           "step-99999999999999999999.safetensors"})
    write_bytes(folder / "new/run/" + name, {});
  const std::vector<NamedState> tensors = some_tensors(0.0f);
  CHECK(resuming(folder / "new/run").load(tensors) == "at 4");
  QUANTRAIN_CHECK_ERROR(checkpoints.save(-1, tensors, ""), DataError, "step is -1, expected 0 or");
  CHECK(values(tensors[0].tensor) == std::vector<float>(6, 4.0f));
  CHECK(values(tensors[1].tensor) == std::vector<float>(2, 8.0f));
}

TEST_CASE("loading a damaged checkpoint fails and changes nothing, or gives the saved values",
          "[layers][checkpoint]") {
  const TemporaryFolder folder;
  const Checkpoints checkpoints({.folder = folder.path(), .resume = true});
  checkpoints.save(1, some_tensors(1.0f), "first");
  checkpoints.save(2, some_tensors(2.0f), "second");
  const std::string path = folder / "step-000000000002.safetensors";
  const std::vector<uint8_t> whole = read_bytes(path);
  Random random(1);
  int64_t refused = 0;
  for (size_t i = 0; i < whole.size() + 40; ++i) {
    std::vector<uint8_t> bytes = whole;
    if (i < whole.size())
      bytes[i] = static_cast<uint8_t>(bytes[i] ^ (1 + random.below(255)));
    else
      bytes.resize(static_cast<size_t>(random.below(static_cast<int64_t>(whole.size()))));
    write_bytes(path, bytes);
    const std::vector<NamedState> tensors = some_tensors(0.0f);
    INFO("byte " << i);
    try {
      // A changed byte may turn white space in the header into other white space, which is valid.
      const std::optional<std::string> position = checkpoints.load(tensors);
      CHECK(position == "second");
      CHECK(values(tensors[0].tensor) == std::vector<float>(6, 2.0f));
    } catch (const DataError&) {
      ++refused;
      CHECK(values(tensors[0].tensor) == std::vector<float>(6, 0.0f));
      CHECK(values(tensors[1].tensor) == std::vector<float>(2, 0.0f));
    }
  }
  CHECK(refused > static_cast<int64_t>(whole.size()) - 20);
}

TEST_CASE("a damaged checkpoint is skipped only if skip_damaged is set", "[layers][checkpoint]") {
  const TemporaryFolder folder;
  const Checkpoints first({.folder = folder.path(), .resume = true});
  first.save(1, some_tensors(1.0f), "first");
  first.save(2, some_tensors(2.0f), "second");
  std::vector<uint8_t> bytes = read_bytes(folder / "step-000000000002.safetensors");
  bytes.back() ^= 1;
  write_bytes(folder / "step-000000000002.safetensors", bytes);
  QUANTRAIN_CHECK_ERROR(
      first.load(some_tensors(0.0f)), DataError, "its checksum differs: the file was damaged");
  QUANTRAIN_CHECK_ERROR(first.load(some_tensors(0.0f)), DataError, "step-000000000002.safetensors");
  const Checkpoints second(
      {.folder = folder.path(), .keep = 1, .resume = true, .skip_damaged = true});
  CHECK(second.load(some_tensors(0.0f)) == "first");
  // The file that was skipped keeps its bytes under another name, whatever is saved later.
  const std::string skipped = folder / "step-000000000002.safetensors.skipped";
  CHECK(read_bytes(skipped) == bytes);
  for (const int64_t step : {1, 3, 4}) second.save(step, some_tensors(1.5f), "again");
  CHECK(folder.files() == 2);
  CHECK(read_bytes(skipped) == bytes);
  CHECK(second.load(some_tensors(0.0f)) == "again");
}

TEST_CASE("no later checkpoint is removed", "[layers][checkpoint]") {
  const TemporaryFolder folder;
  const Checkpoints checkpoints({.folder = folder.path(), .keep = 1});
  checkpoints.save(8, some_tensors(8.0f), "eight");
  const std::vector<uint8_t> eight = read_bytes(folder / "step-000000000008.safetensors");
  checkpoints.save(3, some_tensors(3.0f), "three");
  CHECK(read_bytes(folder / "step-000000000008.safetensors.skipped") == eight);
  write_bytes(folder / "step-000000000008.safetensors", eight);
  checkpoints.save(4, some_tensors(4.0f), "four");
  CHECK(read_bytes(folder / "step-000000000008.safetensors.skipped2") == eight);
  CHECK(checkpoints.load(some_tensors(0.0f)) == "four");
  CHECK(folder.files() == 3);
}

TEST_CASE("checkpoints are kept, set aside and loaded at any path", "[layers][checkpoint]") {
  const test::FarFolder folder;
  const std::string run = folder / "a/" + test::kFarName;
  const Checkpoints checkpoints({.folder = run, .keep = 1});
  for (const int step : {8, 3, 4}) {
    checkpoints.save(step, some_tensors(static_cast<float>(step)), "at " + std::to_string(step));
  }
  CHECK(names_in(run) == std::vector<std::string>{"step-000000000004.safetensors",
                                                  "step-000000000008.safetensors.skipped"});
  CHECK(checkpoints.load(some_tensors(0.0f)) == "at 4");
}

TEST_CASE("a run does not start anew if all of its checkpoints are damaged",
          "[layers][checkpoint]") {
  const TemporaryFolder folder;
  for (const char* name : {"step-000000000001.safetensors", "step-000000000002.safetensors"})
    write_bytes(folder / name, std::vector<uint8_t>(20, 7));
  const Checkpoints checkpoints({.folder = folder.path(), .resume = true, .skip_damaged = true});
  QUANTRAIN_CHECK_ERROR(
      checkpoints.load(some_tensors(0.0f)), DataError, ": all checkpoints are damaged: name");
  CHECK(folder.files() == 2);
}

TEST_CASE("a whole checkpoint of a newer version is not damaged", "[layers][checkpoint]") {
  const TemporaryFolder folder;
  const Checkpoints checkpoints({.folder = folder.path(), .resume = true, .skip_damaged = true});
  checkpoints.save(1, some_tensors(1.0f), "");
  checkpoints.save(2, some_tensors(2.0f), "");
  const std::string path = folder / "step-000000000002.safetensors";
  TensorFile file = load_safetensors(path);
  file.metadata["version"] = "2";
  Fnv1a hash;
  const auto add = [&hash](std::string_view text) {
    hash.add(std::to_string(text.size()));
    hash.add(uint8_t{0});
    hash.add(text);
  };
  for (const auto& [key, value] : file.metadata) {
    if (key == "checksum") continue;
    add(key);
    add(value);
  }
  for (const TensorFile::Entry& entry : file.entries()) {
    add(entry.name);
    add(dtype_name(entry.dtype));
    for (const int64_t extent : entry.shape) add(std::to_string(extent));
    hash.add(entry.bytes);
  }
  file.metadata["checksum"] = std::to_string(hash.value());
  save_safetensors(path, file);
  QUANTRAIN_CHECK_ERROR(
      checkpoints.load(some_tensors(0.0f)), DataError, "version is \"2\", expected \"1\"");
  CHECK(folder.files() == 2);
}

TEST_CASE("a checkpoint of a run with an equal configuration is refused", "[layers][checkpoint]") {
  const TemporaryFolder one, other;
  const std::string name = "step-000000000002.safetensors";
  const Checkpoints first({.folder = one.path(), .configuration = "a run"});
  const Checkpoints second({.folder = other.path(), .configuration = "a run"});
  CHECK(first.options().run.size() == 16);
  CHECK(first.options().run != second.options().run);
  first.save(1, some_tensors(1.0f), "");
  second.save(2, some_tensors(2.0f), "");
  CHECK(resuming(one.path()).options().run == first.options().run);
  QUANTRAIN_CHECK_ERROR(
      Checkpoints({.folder = one.path(), .resume = true, .configuration = "a run", .run = "mine"}),
      DataError,
      "is of the run " + first.options().run + ", expected mine");
  write_bytes(one / name, read_bytes(other / name));
  for (const std::string& run : {first.options().run, second.options().run})
    QUANTRAIN_CHECK_ERROR(resuming(one.path()), DataError, "of the run " + run);
  const std::vector<NamedState> tensors = some_tensors(0.0f);
  QUANTRAIN_CHECK_ERROR(first.load(tensors), DataError, "step-000000000002.safetensors: is of the");
  CHECK(values(tensors[0].tensor) == std::vector<float>(6, 0.0f));
}

TEST_CASE("an error names the file that exists, however its number is written",
          "[layers][checkpoint]") {
  const TemporaryFolder folder;
  const Checkpoints checkpoints({.folder = folder.path(), .resume = true});
  checkpoints.save(7, some_tensors(7.0f), "seven");
  const std::vector<uint8_t> seven = read_bytes(folder / "step-000000000007.safetensors");
  write_bytes(folder / "step-99.safetensors", std::vector<uint8_t>{1, 2, 3});
  QUANTRAIN_CHECK_ERROR(checkpoints.load(some_tensors(0.0f)), DataError, "step-99.safetensors: ");
  write_bytes(folder / "step-99.safetensors", seven);
  CHECK(checkpoints.load(some_tensors(0.0f)) == "seven");
  checkpoints.save(99, some_tensors(9.0f), "ninety-nine");
  CHECK(read_bytes(folder / "step-99.safetensors.skipped") == seven);
  CHECK(checkpoints.load(some_tensors(0.0f)) == "ninety-nine");
}

TEST_CASE("a checkpoint of another run is refused, with the difference in the message",
          "[layers][checkpoint]") {
  const TemporaryFolder folder;
  resuming(folder.path()).save(5, some_tensors(1.0f), "");
  QUANTRAIN_CHECK_ERROR(Checkpoints({.folder = folder.path()}),
                        DataError,
                        "holds the checkpoints of a run: resume it, name another folder");
  const Checkpoints other(
      {.folder = folder.path(), .resume = true, .configuration = "another run"});
  QUANTRAIN_CHECK_ERROR(other.load(some_tensors(0.0f)),
                        DataError,
                        "belongs to a run with the configuration \"a run\", but this run has "
                        "\"another run\": resume with that configuration, or name another folder");
  // Of long configurations, the message shows what differs.
  const std::string files = "train --data " + std::string(300, 'd');
  const std::string rest = " {\n  \"bits\": 8,\n  \"signed\": true\n}";
  const TemporaryFolder long_folder;
  Checkpoints({.folder = long_folder.path(),
               .configuration = files + " --epochs 2 --target  --seed 1 --lr 0.1" + rest})
      .save(5, some_tensors(1.0f), "");
  const Checkpoints longer(
      {.folder = long_folder.path(),
       .resume = true,
       .configuration = files + " --epochs 3 --target t --seed 1 --lr 0.1 {\n  \"bits\": 4,\n" +
                        "  \"signed\": true\n}"});
  QUANTRAIN_CHECK_ERROR(longer.load(some_tensors(0.0f)),
                        DataError,
                        "the configuration \"--epochs 2 ... --target  ... \"bits\": 8,\", but this "
                        "run has \"--epochs 3 ... --target t ... \"bits\": 4,\": resume");
  const Checkpoints more(
      {.folder = long_folder.path(),
       .resume = true,
       .configuration = files + " --epochs 2 --more --target  --seed 1 --lr 0.1" + rest});
  QUANTRAIN_CHECK_ERROR(more.load(some_tensors(0.0f)),
                        DataError,
                        "the configuration \"\", but this run has \"--more\"");
  const Checkpoints same = resuming(folder.path());
  std::vector<NamedState> tensors = some_tensors(0.0f);
  tensors[1].tensor = Tensor::zeros({3});
  QUANTRAIN_CHECK_ERROR(same.load(tensors), DataError, "\"bias\" has shape [2], expected [3]");
  CHECK(values(tensors[0].tensor) == std::vector<float>(6, 0.0f));
  tensors.push_back({"scale", Tensor::zeros({1})});
  tensors.erase(tensors.begin() + 1);
  QUANTRAIN_CHECK_ERROR(same.load(tensors), DataError, "lacks \"scale\"");
}

TEST_CASE("checkpoints refuse invalid folders and options", "[layers][checkpoint]") {
  const TemporaryFolder folder;
  write_bytes(folder / "file", {});
  QUANTRAIN_CHECK_ERROR(Checkpoints({.folder = ""}), DataError, "folder is \"\": name a folder");
  QUANTRAIN_CHECK_ERROR(Checkpoints({.folder = folder / "file/run"}), DataError, "file/run");
  QUANTRAIN_CHECK_ERROR(Checkpoints({.folder = folder.path(),
                                     .configuration = "Gr\xf6\xdf"
                                                      "e"}),
                        DataError,
                        "configuration or run is not UTF-8");
  QUANTRAIN_CHECK_ERROR(
      Checkpoints({.folder = folder.path(), .every = -1}), DataError, "every is -1");
  QUANTRAIN_CHECK_ERROR(Checkpoints({.folder = folder.path(), .keep = 0}), DataError, "keep is 0");
}

}  // namespace quantrain
