#include "examples/common/flags.hpp"

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <system_error>
#include <utility>

#include "framework/arithmetic/qparams.hpp"
#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/path.hpp"
#include "framework/core/system/process.hpp"

namespace quantrain::examples {
namespace {

// A validator for CLI11: returns an error text, or an empty string if the value is valid.
std::string check_rate(const std::string& text) {
  float value = 0.0f;
  const bool fits = CLI::detail::lexical_cast(text, value) && value > 0.0f && std::isfinite(value);
  return fits ? "" : "must be positive and finite, got " + text;
}

std::string check_seed(const std::string& text) {
  const bool is_number = text.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? "" : "must be an integer of at least 0, got " + text;
}

// Whether two paths name the same file, which need not exist yet.
bool same_file(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && resolved(a) == resolved(b);
}

void add_flag(CLI::App& app, const ProgramFlag& flag) {
  if (std::string* const* const text = std::get_if<std::string*>(&flag.value)) {
    app.add_option(flag.name, **text, flag.help);
  } else {
    app.add_option(flag.name, *std::get<int64_t*>(flag.value), flag.help)
        ->check(CLI::Range(flag.least, flag.most));
  }
}

constexpr const char* kFrozenEpochs = "--frozen-epochs";

void add_flags(CLI::App& app, const std::string& data, Flags& flags) {
  if (!data.empty()) app.add_option("--data", flags.data, data);
  app.add_option("--epochs", flags.epochs, "passes of float training")
      ->check(CLI::Range(int64_t{1}, kMostCounted));
  app.add_option("--qat-epochs",
                 flags.qat_epochs,
                 "passes of training with quantization, from the float weights")
      ->check(CLI::Range(int64_t{1}, kMostCounted));
  app.add_option("--batch", flags.batch, "samples in one step")
      ->check(CLI::Range(int64_t{1}, kMostCounted));
  app.add_option("--shards",
                 flags.shards,
                 "parts of a batch that are computed as batches of their own, by any number of "
                 "ranks (mpirun -n 4 ...); 0: 8 under mpirun, else 1")
      ->check(CLI::Range(int64_t{0}, kMostCounted));
  app.add_option("--lr", flags.learning_rate, "learning rate of float training")
      ->check(check_rate, "RATE");
  app.add_option("--qat-lr", flags.qat_learning_rate, "learning rate of training with quantization")
      ->check(check_rate, "RATE");
  app.add_option("--seed", flags.seed, "seed of weights, sample order and augmentation")
      ->check(check_seed, "NUMBER");
  app.add_option("--threads", flags.threads, "threads; 0: one for each core")
      ->check(CLI::Range(0, 1024));
  app.add_option("--limit", flags.limit, "train on the first N samples")
      ->check(CLI::Range(int64_t{1}, kMostCounted));
  app.add_option("--weight-bits", flags.weight_bits, "bits of weights in hidden layers")
      ->check(CLI::Range(kLeastBits, kMostBits));
  app.add_option("--activation-bits", flags.activation_bits, "bits of activations in hidden layers")
      ->check(CLI::Range(kLeastBits, kMostBits));
  app.add_option("--timing-calls",
                 flags.timing_calls,
                 "each reported time is the median of this many calls")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--save", flags.save, "write the integer model to this file");
  app.add_option(
      "--network", flags.network, "write the network trained with quantization to this file");
  app.add_option(kFrozenEpochs,
                 flags.frozen_epochs,
                 "freeze ranges and batch norms in the last N passes of training with quantization")
      ->check(CLI::Range(int64_t{0}, kMostCounted));
  app.add_option("--checkpoint", flags.checkpoint, "keep checkpoints in this folder");
  app.add_option("--checkpoint-every",
                 flags.checkpoint_every,
                 "steps between two checkpoints; 0: one after each epoch")
      ->check(CLI::Range(int64_t{0}, kMostCounted));
  app.add_flag("--resume", flags.resume, "continue from the last checkpoint, if there is one");
  app.add_option("--log", flags.log, "write a log and curves of each training to this folder");
  app.add_option("--report", flags.report, "write all numbers to this file, as JSON");
}

}  // namespace

std::optional<Flags> parse_flags(int argc, const char* const* argv, const CommandLine& line) {
  Flags flags = line.defaults;
  CLI::App app(line.description);
  add_flags(app, line.data, flags);
  for (const ProgramFlag& flag : line.flags) add_flag(app, flag);
  for (CLI::Option* option : app.get_options()) {
    if (option != app.get_help_ptr()) option->capture_default_str();
  }
  CLI::Option& frozen = *app.get_option(kFrozenEpochs);
  frozen.default_str("a third of them");
  const auto [count, values] = system::start_program(argc, argv);
  try {
    app.parse(count, values);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw DataError("flags", error.what());
  }
  if (frozen.count() == 0) flags.frozen_epochs = flags.qat_epochs / 3;
  if (flags.frozen_epochs >= flags.qat_epochs)
    throw DataError("flags",
                    kFrozenEpochs,
                    " ",
                    flags.frozen_epochs,
                    " leaves none of ",
                    flags.qat_epochs,
                    " --qat-epochs in which ranges move: at most ",
                    flags.qat_epochs - 1);
  const std::pair<const char*, const std::string*> files[] = {
      {"--save", &flags.save}, {"--network", &flags.network}, {"--report", &flags.report}};
  for (const auto& [name, path] : files) {
    for (const auto& [other, its_path] : files) {
      if (path != its_path && same_file(*path, *its_path))
        throw DataError("flags", name, " and ", other, " name the same file: ", *path);
    }
  }
  if (flags.checkpoint.empty() && (flags.resume || flags.checkpoint_every > 0)) {
    throw DataError(
        "flags", flags.resume ? "--resume" : "--checkpoint-every", " needs --checkpoint FOLDER");
  }
  for (const auto& [name, path] : files) {
    if (!path->empty()) check_writable(*path);
  }
  return flags;
}

}  // namespace quantrain::examples
