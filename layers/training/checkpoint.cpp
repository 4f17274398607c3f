#include "layers/training/checkpoint.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "framework/autograd/parameters.hpp"
#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/hash.hpp"
#include "framework/io/format.hpp"
#include "framework/io/safetensors.hpp"

namespace quantrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormat = "quantrain.checkpoint";
constexpr const char* kVersion = "1";
constexpr const char* kPrefix = "step-";
constexpr const char* kSuffix = ".safetensors";
constexpr size_t kDigits = 12;

std::string path_of(const std::string& folder, int64_t step) {
  std::string number = std::to_string(step);
  number.insert(0, kDigits - std::min(kDigits, number.size()), '0');
  return (fs::path(folder) / (kPrefix + number + kSuffix)).string();
}

/// Steps of the checkpoints in a folder, ascending.
std::vector<int64_t> steps_in(const std::string& folder) {
  std::vector<int64_t> steps;
  for (const std::string& name : names_in(folder)) {
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    const char* const first = name.data() + std::string_view(kPrefix).size();
    const char* const last = name.data() + name.size() - std::string_view(kSuffix).size();
    int64_t step = 0;
    const auto [stopped, problem] = std::from_chars(first, last, step);
    if (problem == std::errc() && stopped == last && step >= 0) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::string checksum(const TensorFile& file) {
  Fnv1a hash;
  const auto add_text = [&hash](std::string_view text) {
    hash.add(std::to_string(text.size()));
    hash.add(uint8_t{0});
    hash.add(text);
  };
  for (const auto& [key, value] : file.metadata) {
    if (key == "checksum") continue;
    add_text(key);
    add_text(value);
  }
  // A file that was read has its entries in the order of their bytes: wide elements first.
  std::vector<const TensorFile::Entry*> entries;
  for (const TensorFile::Entry& entry : file.entries()) entries.push_back(&entry);
  std::stable_sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) {
    return dtype_size(a->dtype) > dtype_size(b->dtype);
  });
  for (const TensorFile::Entry* entry : entries) {
    add_text(entry->name);
    add_text(dtype_name(entry->dtype));
    for (const int64_t extent : entry->shape) add_text(std::to_string(extent));
    hash.add(entry->bytes);
  }
  return std::to_string(hash.value());
}

/// Thrown if the file itself cannot be read, is damaged or is no checkpoint. skip_damaged skips a
/// file only for this error.
struct Damage : DataError {
  using DataError::DataError;
};

TensorFile read_whole(const std::string& path) {
  try {
    TensorFile file = load_safetensors(path);
    check_format(path, file, kFormat, kVersion);
    if (file.metadata_at("checksum") != checksum(file))
      throw DataError("load", path, ": its checksum differs: the file was damaged");
    return file;
  } catch (const DataError& error) {
    throw Damage(
        "checkpoint",
        error.what(),
        "; to continue from the checkpoint before it, set skip_damaged or remove the file");
  }
}

}  // namespace

Checkpoints::Checkpoints(CheckpointOptions options) : options_(std::move(options)) {
  const std::string& folder = options_.folder;
  const auto fail = [&](const auto&... parts) { throw DataError("checkpoint", parts...); };
  if (options_.every < 0) fail("every is ", options_.every, ", expected 0 or more steps");
  if (options_.keep < 1) fail("keep is ", options_.keep, ", expected at least 1");
  if (folder.empty()) fail("the option folder is \"\": name a folder");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(folder, ": ", error.message());
  check_writable(path_of(folder, 0));
  if (!options_.resume && !steps_in(folder).empty()) {
    fail(folder,
         ": holds the checkpoints of a run: resume it, name another folder, or remove them");
  }
}

void Checkpoints::save(int64_t step,
                       std::span<const NamedState> state,
                       const std::string& position) const {
  if (step < 0) throw DataError("checkpoint", "step is ", step, ", expected 0 or more");
  TensorFile file;
  set_format(file, kFormat, kVersion);
  file.metadata["configuration"] = options_.configuration;
  file.metadata["position"] = position;
  add_state(file, state);
  file.metadata["checksum"] = checksum(file);
  save_safetensors(path_of(options_.folder, step), file);

  // Keeps the last `keep` checkpoints up to this step, and removes older and later ones. Later ones
  // exist only if load() skipped them as damaged.
  std::vector<int64_t> steps = steps_in(options_.folder);
  const auto here = std::upper_bound(steps.begin(), steps.end(), step);
  const auto kept = std::min<std::ptrdiff_t>(options_.keep, here - steps.begin());
  steps.erase(here - kept, here);
  for (const int64_t other : steps) {
    std::error_code gone_already;
    fs::remove(path_of(options_.folder, other), gone_already);
  }
}

std::optional<std::string> Checkpoints::load(std::span<const NamedState> state) const {
  std::vector<int64_t> steps = steps_in(options_.folder);
  for (; !steps.empty(); steps.pop_back()) {
    const std::string path = path_of(options_.folder, steps.back());
    TensorFile file;
    try {
      file = read_whole(path);
    } catch (const Damage&) {
      if (!options_.skip_damaged) throw;
      continue;
    }
    const std::string& configuration = file.metadata_at("configuration");
    if (configuration != options_.configuration) {
      throw DataError("checkpoint",
                      path,
                      ": belongs to a run with the configuration \"",
                      configuration,
                      "\", but this run has \"",
                      options_.configuration,
                      "\": resume with that configuration, or name another folder");
    }
    std::string position = file.metadata_at("position");
    file.metadata.clear();
    set_format(file, "quantrain", "1");
    load_parameters(path, file, state);
    return position;
  }
  return std::nullopt;
}

}  // namespace quantrain
