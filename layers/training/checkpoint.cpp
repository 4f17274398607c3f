#include "layers/training/checkpoint.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "framework/autograd/parameters.hpp"
#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/hash.hpp"
#include "framework/core/path.hpp"
#include "framework/core/splitmix64.hpp"
#include "framework/core/system/process.hpp"
#include "framework/io/format.hpp"
#include "framework/io/json.hpp"
#include "framework/io/json_writer.hpp"
#include "framework/io/safetensors.hpp"
#include "layers/training/what_differs.hpp"

namespace quantrain {
namespace {

constexpr const char* kFormat = "quantrain.checkpoint";
constexpr const char* kVersion = "1";
constexpr const char* kPrefix = "step-";
constexpr const char* kSuffix = ".safetensors";
constexpr const char* kSkipped = ".skipped";
constexpr size_t kDigits = 12;

std::string path_of(const std::string& folder, int64_t step) {
  std::string number = std::to_string(step);
  number.insert(0, kDigits - std::min(kDigits, number.size()), '0');
  return to_text(to_path(folder) / (kPrefix + number + kSuffix));
}

/// A checkpoint's file.
struct CheckpointFile {
  int64_t step;
  std::string path;
};

/// The checkpoints in a folder, by ascending step. Of two files of one step, the one whose name
/// save() writes is the last.
std::vector<CheckpointFile> checkpoints_in(const std::string& folder) {
  std::vector<CheckpointFile> files;
  for (const std::string& name : names_in(folder)) {
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    const char* const first = name.data() + std::string_view(kPrefix).size();
    const char* const last = name.data() + name.size() - std::string_view(kSuffix).size();
    int64_t step = 0;
    const auto [stopped, problem] = std::from_chars(first, last, step);
    if (problem == std::errc() && stopped == last && step >= 0)
      files.push_back({step, to_text(to_path(folder) / to_path(name))});
  }
  std::sort(files.begin(), files.end(), [](const CheckpointFile& a, const CheckpointFile& b) {
    const auto key = [](const CheckpointFile& file) {
      const size_t digits = to_path(file.path).filename().native().size();
      return std::pair(file.step, digits);
    };
    return key(a) < key(b);
  });
  return files;
}

/// Renames a file to "<path>.skipped", or, if that exists, to "<path>.skipped2" and so on.
void set_aside(const std::string& path) {
  std::string name = path + kSkipped;
  for (int i = 2; is_name_taken(name); ++i) name = path + kSkipped + std::to_string(i);
  rename_file(path, name);
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

/// Thrown if a file was read and is damaged or is no checkpoint. skip_damaged skips a file only for
/// this error. A file that cannot be read may be whole.
struct Damage : DataError {
  using DataError::DataError;
};

std::vector<uint8_t> next_bytes(InputFile& file, int64_t count) {
  std::vector<uint8_t> bytes(static_cast<size_t>(std::min(file.left(), count)));
  bytes.resize(file.read(bytes));
  return bytes;
}

TensorFile read_whole(const std::string& path) {
  InputFile input(path);
  const std::vector<uint8_t> bytes = next_bytes(input, input.left());
  TensorFile file;
  try {
    file = parse_safetensors(bytes, path);
    if (!file.metadata.contains("checksum")) check_format(path, file, kFormat, kVersion);
    if (file.metadata_at("checksum") != checksum(file))
      throw DataError("load", path, ": its checksum differs: the file was damaged");
    for (const char* key : {"configuration", "position"}) file.metadata_at(key);
  } catch (const DataError& error) {
    throw Damage(
        "checkpoint",
        error.what(),
        "; to continue from the checkpoint before it, set skip_damaged or remove the file");
  }
  check_format(path, file, kFormat, kVersion);  // a whole file of another version is not damaged
  return file;
}

/// The identity that a checkpoint holds; "" if it has none (early versions) or cannot be read.
/// Reads only the header.
std::string run_of(const std::string& path) {
  constexpr uint64_t kMostHeader = uint64_t{16} << 20;  // of safetensors
  try {
    InputFile file(path);
    uint64_t size = 0;
    const std::vector<uint8_t> length = next_bytes(file, sizeof size);
    if (length.size() < sizeof size) return {};
    std::memcpy(&size, length.data(), sizeof size);
    if (size > kMostHeader) return {};
    const std::vector<uint8_t> text = next_bytes(file, static_cast<int64_t>(size));
    const JsonDocument header({reinterpret_cast<const char*>(text.data()), text.size()});
    const std::optional<JsonValue> metadata = header.root().find("__metadata__");
    const std::optional<JsonValue> run = metadata ? metadata->find("run") : std::nullopt;
    return std::string(run ? run->text().value_or("") : "");
  } catch (const DataError&) {
    return {};
  } catch (const JsonDocument::Malformed&) {
    return {};
  }
}

/// A random identity. Unlike all else, it does not come from the program's seed: it tells apart two
/// runs that are equal.
std::string new_run() {
  uint64_t bits = 0;
  if (!system::random_bits(bits)) {  // an old kernel
    const int64_t now = std::chrono::system_clock::now().time_since_epoch().count();
    bits = SplitMix64::mix(static_cast<uint64_t>(now) ^ static_cast<uint64_t>(system::process_id())
                                                            << 48);
  }
  char digits[17] = {};
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(bits));
  return digits;
}

/// The identity of the checkpoints in a folder; "" if none has one. If `expected` is not "", all
/// must have it.
std::string run_in(const std::vector<CheckpointFile>& files, std::string expected) {
  const std::string* known = nullptr;  // the file that `expected` is from
  for (const CheckpointFile& file : files) {
    const std::string run = run_of(file.path);
    if (run.empty()) continue;
    if (!expected.empty() && run != expected) {
      throw DataError("checkpoint",
                      file.path,
                      ": is of the run ",
                      run,
                      known != nullptr ? ", but " + *known + " is of the run " : ", expected ",
                      expected,
                      ": keep each run in a folder of its own");
    }
    expected = run;
    known = &file.path;
  }
  return expected;
}

}  // namespace

Checkpoints::Checkpoints(CheckpointOptions options) : options_(std::move(options)) {
  const std::string& folder = options_.folder;
  const auto fail = [&](const auto&... parts) { throw DataError("checkpoint", parts...); };
  if (options_.every < 0) fail("every is ", options_.every, ", expected 0 or more steps");
  if (options_.keep < 1) fail("keep is ", options_.keep, ", expected at least 1");
  if (folder.empty()) fail("the option folder is \"\": name a folder");
  for (const std::string* text : {&options_.configuration, &options_.run})
    if (!is_utf8(*text)) fail("configuration or run is not UTF-8: \"", *text, '"');
  make_folders(folder);
  check_writable(path_of(folder, 0));
  const std::vector<CheckpointFile> files = checkpoints_in(folder);
  if (!options_.resume && !files.empty()) {
    fail(folder,
         ": holds the checkpoints of a run: resume it, name another folder, or remove them");
  }
  options_.run = run_in(files, std::move(options_.run));
  if (options_.run.empty()) options_.run = new_run();
}

void Checkpoints::save(int64_t step,
                       std::span<const NamedState> state,
                       const std::string& position) const {
  if (step < 0) throw DataError("checkpoint", "step is ", step, ", expected 0 or more");
  TensorFile file;
  set_format(file, kFormat, kVersion);
  file.metadata["configuration"] = options_.configuration;
  file.metadata["position"] = position;
  file.metadata["run"] = options_.run;
  add_state(file, state);
  file.metadata["checksum"] = checksum(file);
  const std::string path = path_of(options_.folder, step);
  save_safetensors(path, file);

  // Keeps the last `keep` checkpoints up to this step. Later ones, and a file of the same step
  // under another name, are not this run's past: they are kept, too, but under another name.
  std::vector<CheckpointFile> files = checkpoints_in(options_.folder);
  int left = options_.keep;
  for (auto other = files.rbegin(); other != files.rend(); ++other) {
    if (other->step >= step && other->path != path) {
      set_aside(other->path);
    } else if (left-- <= 0) {
      remove_file(other->path);
    }
  }
}

std::optional<std::string> Checkpoints::load(std::span<const NamedState> state) const {
  std::vector<CheckpointFile> files = checkpoints_in(options_.folder);
  std::vector<std::string> skipped;
  for (; !files.empty(); files.pop_back()) {
    const std::string& path = files.back().path;
    TensorFile file;
    try {
      file = read_whole(path);
    } catch (const Damage& damage) {
      if (!options_.skip_damaged) throw;
      if (files.size() == 1)
        throw DataError("checkpoint",
                        options_.folder,
                        ": all checkpoints are damaged: name another folder to start anew. ",
                        damage.what());
      skipped.push_back(path);
      continue;
    }
    const auto run = file.metadata.find("run");
    if (run != file.metadata.end() && run->second != options_.run) {
      throw DataError(
          "checkpoint", path, ": is of the run ", run->second, ", expected ", options_.run);
    }
    const std::string& configuration = file.metadata_at("configuration");
    if (configuration != options_.configuration) {
      const auto [theirs, own] = what_differs(configuration, options_.configuration);
      throw DataError("checkpoint",
                      path,
                      ": belongs to a run with the configuration \"",
                      theirs,
                      "\", but this run has \"",
                      own,
                      "\": resume with that configuration, or name another folder");
    }
    std::string position = file.metadata_at("position");
    file.metadata.clear();
    set_format(file, "quantrain", "1");
    load_parameters(path, file, state);
    for (const std::string& damaged : skipped) set_aside(damaged);
    return position;
  }
  return std::nullopt;
}

}  // namespace quantrain
