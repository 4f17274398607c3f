// Reads a checkpoint as it is. Then writes its tensors and its position to a checkpoint with a
// right checksum, and resumes a run from it.
#include <unistd.h>

#include <filesystem>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/io/safetensors.hpp"
#include "fuzz/harness.hpp"
#include "fuzz/training.hpp"
#include "layers/state.hpp"

namespace quantrain::fuzz {
namespace {

namespace fs = std::filesystem;

/// A folder for one checkpoint, in memory if the system has one there.
class Folder {
 public:
  Folder() {
    const fs::path memory = "/dev/shm";
    std::error_code none;
    path_ = (fs::is_directory(memory, none) ? memory : fs::temp_directory_path()) /
            ("quantrain-fuzz-" + std::to_string(::getpid()));
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path() const { return path_.string(); }
  std::string file() const { return (path_ / "step-000000000002.safetensors").string(); }
  void clear() const {
    for (const auto& entry : fs::directory_iterator(path_)) fs::remove(entry.path());
  }

 private:
  fs::path path_;
};

std::vector<NamedState> tensors_of(const TensorFile& file) {
  std::vector<NamedState> all;
  for (const TensorFile::Entry& entry : file.entries()) {
    if (entry.dtype == DType::kF32) {
      all.push_back({entry.name, Tensor::from(entry.shape, file.values<float>(entry.name))});
    } else if (entry.dtype == DType::kI64) {
      IntegerBuffer integers(entry.shape);
      integers.set(file.values<int64_t>(entry.name));
      all.push_back({entry.name, integers});
    }
  }
  return all;
}

}  // namespace

bool accepts(std::span<const uint8_t> input) {
  static const Folder folder;
  folder.clear();
  const std::span<const uint8_t> parts[] = {input};
  write_file(folder.file(), parts);
  Sequential net{Linear{2, 3}};
  const CheckpointOptions options{.folder = folder.path(), .resume = true, .skip_damaged = true};
  try {
    Checkpoints(options).load(state(net));
  } catch (const Error&) {
  }
  folder.clear();
  const TensorFile file = parse_safetensors(input, "input");
  Checkpoints(options).save(2, tensors_of(file), file.metadata_at("position"));
  const FitResult result = train(folder.path(), 0, true);
  if (result.epochs.size() > 2001) finding("more reports than a run keeps");
  return true;
}

}  // namespace quantrain::fuzz
