#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "framework/autograd/named_state.hpp"

namespace quantrain {

struct CheckpointOptions {
  std::string folder = {};    ///< path, created if missing; "": fit() writes no checkpoints
  int64_t every = 0;          ///< steps between checkpoints within an epoch; 0: none within it
  int keep = 3;               ///< number of latest checkpoints to keep
  bool resume = false;        ///< continue from the latest checkpoint, if there is one
  bool skip_damaged = false;  ///< use the latest checkpoint that is not damaged
  /// The program's description of the run. A checkpoint with another description is refused.
  std::string configuration = {};
  /// Identity of the run, which each of its checkpoints holds. A checkpoint of another run is
  /// refused. "": that of the checkpoints in the folder, or a random one if there are none.
  std::string run = {};
};

/// The checkpoints of one run in their own folder: files "step-<number>.safetensors". Each is
/// written to a temporary file, flushed and then renamed. So a process that is killed at any time
/// leaves no incomplete checkpoint.
class Checkpoints {
 public:
  /// Throws: DataError if options.folder is "", if the folder cannot be created or written, if it
  /// holds checkpoints and options.resume is not set, if it holds checkpoints of two runs or of
  /// another run than options.run, if options.every is negative, if options.keep is less than 1,
  /// or if a text is not UTF-8.
  explicit Checkpoints(CheckpointOptions options);

  /// The options. `run` is the run's identity.
  const CheckpointOptions& options() const& { return options_; }

  /// Writes a checkpoint, then removes all before it except the options.keep - 1 latest. Files of
  /// later steps are renamed to "step-<number>.safetensors.skipped", and are never removed.
  /// position: UTF-8 text that load() returns.
  /// Throws: DataError if step is negative or the checkpoint cannot be written. Existing
  /// checkpoints then stay.
  void save(int64_t step, std::span<const NamedState> state, const std::string& position) const;

  /// Reads the latest checkpoint into the state and returns its position, or nullopt if there is
  /// no checkpoint. With options.skip_damaged, files that were read and are damaged, or are no
  /// checkpoints, are skipped and renamed to "step-<number>.safetensors.skipped".
  /// Throws: DataError naming the file if it cannot be opened or read; if it has another
  /// configuration, run or version; if it lacks one of the entries, has another entry, or has an
  /// entry of another type or shape; if an integer is outside of its range; or if the value of a
  /// constant differs. Without options.skip_damaged, also if it is damaged or is no checkpoint;
  /// with it, only if all files are. On an error, nothing changes.
  std::optional<std::string> load(std::span<const NamedState> state) const;

 private:
  CheckpointOptions options_;
};

}  // namespace quantrain
