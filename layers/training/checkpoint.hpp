#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "framework/autograd/named_tensor.hpp"

namespace quantrain {

struct CheckpointOptions {
  std::string folder = {};    ///< created if missing; empty: no checkpoints
  int64_t every = 0;          ///< steps between checkpoints in an epoch; 0: only after each epoch
  int keep = 3;               ///< number of latest checkpoints to keep
  bool resume = false;        ///< continue from the latest checkpoint, if there is one
  bool skip_damaged = false;  ///< if the latest is damaged, use the one before it
  /// The program's description of the run: a checkpoint with another description is refused.
  std::string configuration = {};
};

/// The checkpoints of one run in their own folder: files "step-<number>.safetensors". Each is
/// written under another name, flushed and renamed, so a process killed at any time leaves only
/// whole files.
class Checkpoints {
 public:
  /// Throws: DataError if options.folder is empty, cannot be created or written, or holds
  /// checkpoints while options.resume is not set; or if every is negative or keep less than 1.
  explicit Checkpoints(CheckpointOptions options);

  const CheckpointOptions& options() const& { return options_; }

  /// Writes a checkpoint, then removes all others except the options.keep - 1 before it.
  /// position: the text that load() returns, UTF-8.
  /// Throws: DataError if step is negative or it cannot be written; existing checkpoints stay.
  void save(int64_t step, std::span<const NamedTensor> tensors, const std::string& position) const;

  /// Reads the last checkpoint into the tensors and returns its position; empty if there is no
  /// checkpoint.
  /// Throws: DataError naming the file if it is damaged (in any byte), has another configuration,
  /// or has a missing, unknown or misshapen tensor. On an error, nothing changes. With
  /// options.skip_damaged, damaged checkpoints are skipped.
  std::optional<std::string> load(std::span<const NamedTensor> tensors) const;

 private:
  CheckpointOptions options_;
};

}  // namespace quantrain
