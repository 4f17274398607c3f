#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "framework/autograd/named_tensor.hpp"

namespace quantrain {

struct CheckpointOptions {
  std::string folder = {};    ///< is made where it is missing; empty: no checkpoints
  int64_t every = 0;          ///< steps between two, and one after each epoch; 0: these only
  int keep = 3;               ///< so many stay, the last ones
  bool resume = false;        ///< go on from the last one, where there is one
  bool skip_damaged = false;  ///< from the one before, where the last is damaged
  /// What the run was asked for, in words of the program's: a checkpoint of another is refused.
  std::string configuration = {};
};

/// The checkpoints of one run in a folder of their own: files "step-<number>.safetensors", written
/// beside, flushed and renamed, so that a process killed at any time leaves whole ones.
class Checkpoints {
 public:
  /// Throws: DataError if the folder cannot be made or written, holds checkpoints and
  /// options.resume is not set, or every is negative or keep less than 1.
  explicit Checkpoints(CheckpointOptions options);

  const CheckpointOptions& options() const& { return options_; }

  /// Writes a checkpoint, then removes those older than the last options.keep.
  /// position: what load() returns, UTF-8.
  /// Throws: DataError if it cannot be written: those that are there stay.
  void save(int64_t step, std::span<const NamedTensor> tensors, const std::string& position) const;

  /// Reads the last checkpoint into the tensors and returns its position; nothing if there is none.
  /// Throws: DataError naming the file if it is damaged (each byte counts), is of another
  /// configuration, or lacks a tensor, has another or one of another shape. Nothing has changed
  /// then. Where options.skip_damaged is set, a damaged one counts as if it were not there.
  std::optional<std::string> load(std::span<const NamedTensor> tensors) const;

 private:
  CheckpointOptions options_;
};

}  // namespace quantrain
