#include "layers/training/checkpoint.hpp"

#include <filesystem>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "tests/catch.hpp"
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
  // The run continues from the checkpoint that was loaded, and saving removes later checkpoints.
  second.save(1, some_tensors(1.5f), "first again");
  CHECK(folder.files() == 1);
  CHECK(second.load(some_tensors(0.0f)) == "first again");
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
  QUANTRAIN_CHECK_ERROR(
      Checkpoints({.folder = folder.path(), .every = -1}), DataError, "every is -1");
  QUANTRAIN_CHECK_ERROR(Checkpoints({.folder = folder.path(), .keep = 0}), DataError, "keep is 0");
}

}  // namespace quantrain
