#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace quantrain::examples {

/// Command-line flags that all examples share; each program sets its own defaults.
struct Flags {
  std::string data = "/usr/share/datasets/fashion-mnist";  ///< from Debian's dataset-fashion-mnist
  int64_t epochs = 3;                                      ///< of float training
  int64_t qat_epochs = 1;                                  ///< of training with quantization
  int64_t batch = 64;
  int64_t shards = 0;  ///< of a batch; 0: 8 if several ranks train, else 1
  float learning_rate = 1e-3f;
  float qat_learning_rate = 5e-4f;
  uint64_t seed = 0;
  int threads = 0;           ///< 0: one for each core
  int64_t limit = 0;         ///< train on the first `limit` samples; 0: on all
  int weight_bits = 8;       ///< of the hidden layers
  int activation_bits = 8;   ///< of the hidden layers; the input has 8
  int timing_calls = 200;    ///< a reported time is the median of this many calls
  std::string save = {};     ///< where the integer model goes; empty: nowhere
  std::string network = {};  ///< where the trained, prepared network goes; empty: nowhere
  std::string report = {};   ///< where the JSON report goes; empty: nowhere
  /// Last epochs of QAT, with frozen ranges and batch norms. parse_flags(): a third of all, unless
  /// given.
  int64_t frozen_epochs = 0;
  std::string checkpoint = {};   ///< folder of checkpoints; empty: none
  int64_t checkpoint_every = 0;  ///< steps between checkpoints; 0: one after each epoch
  bool resume = false;           ///< continue from the existing checkpoints
  std::string log = {};          ///< folder for a log and curves of each training; empty: none
};

/// A bound on every count, so that the product of two counts does not overflow.
inline constexpr int64_t kMostCounted = 1'000'000'000;

/// A flag of one program.
struct ProgramFlag {
  std::string name;                            ///< such as "--rows"
  std::string help;                            ///< for --help
  std::variant<std::string*, int64_t*> value;  ///< holds the default; parse_flags() sets it
  int64_t least = 0;                           ///< the smallest number allowed
  int64_t most = kMostCounted;                 ///< the largest number allowed
};

/// The command line of a program.
struct CommandLine {
  std::string description;  ///< first line of --help
  std::string data;         ///< what --data names, for --help; empty: there is no --data
  Flags defaults = {};
  std::vector<ProgramFlag> flags = {};  ///< flags that only this program has
};

/// Reads the flags. A flag that is not given keeps its default, except --frozen-epochs. For --help,
/// prints the help and returns nothing.
/// Throws: DataError with a message of one line, for an unknown flag, an invalid value, flags that
/// do not fit together, or an output that cannot be written.
std::optional<Flags> parse_flags(int argc, const char* const* argv, const CommandLine& line);

}  // namespace quantrain::examples
