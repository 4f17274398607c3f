// The long proofs, which scripts/prove builds and runs. The exit status is 1 if anything differs
// or a proof cannot run.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "examples/common/flags.hpp"
#include "examples/common/report.hpp"
#include "framework/arithmetic/qparams.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "tests/proofs/proofs.hpp"
#include "tests/proofs/table_networks.hpp"

namespace quantrain::proofs {
namespace {

struct Flags {
  std::vector<std::string> data{examples::Flags{}.data};
  std::vector<std::string> networks;
  int threads = 0;
  Training training;
  std::vector<int> bits{8, 4, 2};
  bool every_layer = false;
  int64_t random_networks = 200;
  int64_t most_terms = 1'000'000;
  AccuracyOptions accuracy;
  ObserverOptions observers;
  TableOptions table;
  std::vector<std::string> kinds{"images", "rare"};
  std::string quantized;
};

constexpr int64_t kMany = 1'000'000'000;

/// least: the fewest passes; 0 passes stand for those of the network.
void add_training_flags(CLI::App& command, Training& training, int64_t least = 1) {
  const char* const own = least == 0 ? "; 0: the network's own" : "";
  command.add_option("--epochs", training.epochs, std::string("passes of float training") + own)
      ->check(CLI::Range(least, kMany))
      ->capture_default_str();
  command
      .add_option("--qat-epochs",
                  training.qat_epochs,
                  std::string("passes of training with quantization") + own)
      ->check(CLI::Range(least, kMany))
      ->capture_default_str();
  command.add_option("--limit", training.limit, "train on the first N images; 0: all")
      ->check(CLI::Range(int64_t{0}, kMany))
      ->capture_default_str();
}

void add_bits_flag(CLI::App& command, std::vector<int>& bits) {
  command.add_option("--bits", bits, "bits of weights and activations in hidden layers")
      ->check(CLI::Range(kLeastBits, kMostBits))
      ->delimiter(',')
      ->capture_default_str();
}

void add_flags(CLI::App& app, Flags& flags) {
  std::vector<std::string> names;
  for (const examples::Network& network : examples::networks()) names.push_back(network.name);
  flags.networks = names;
  app.fallthrough();  // these flags may follow the name of the proof, too
  app.require_subcommand(0, 1);
  app.add_option("--data", flags.data, "folder with four IDX files; may be repeated")
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_option("--network", flags.networks, "only these of the examples' networks")
      ->check(CLI::IsMember(names))
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--threads", flags.threads, "threads; 0: one for each core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();

  CLI::App& parity = *app.add_subcommand("parity", "simulation and integers agree in every layer");
  add_training_flags(parity, flags.training);
  add_bits_flag(parity, flags.bits);
  parity.add_flag("--layers", flags.every_layer, "print each layer's line");

  app.add_subcommand("random", "simulation and integers agree in random networks")
      ->add_option("--count", flags.random_networks, "how many")
      ->check(CLI::Range(int64_t{1}, kMany))
      ->capture_default_str();

  app.add_subcommand("sums", "the errors of long sums of floats are within their bounds")
      ->add_option("--most", flags.most_terms, "largest number of terms, at least 10000")
      ->check(CLI::Range(int64_t{10'000}, kMany))
      ->capture_default_str();

  app.add_subcommand("memory", "what loaded models keep in memory; needs no data");

  CLI::App& determinism =
      *app.add_subcommand("determinism", "threads and instruction sets train the same model");
  add_training_flags(determinism, flags.training);

  CLI::App& quantized = *app.add_subcommand(
      "quantized", "quantized ONNX files have the codes of ONNX Runtime, and train on");
  add_training_flags(quantized, flags.training);
  quantized
      .add_option("folder", flags.quantized, "what tests/proofs/quantized_peer.py wrote for --data")
      ->required()
      ->check(CLI::ExistingDirectory);

  CLI::App& accuracy = *app.add_subcommand(
      "accuracy", "QAT in integers against QAT in float; takes long, proves nothing by itself");
  add_training_flags(accuracy, flags.accuracy.training);
  add_bits_flag(accuracy, flags.accuracy.bits);
  accuracy
      .add_option("--seeds", flags.accuracy.seeds, "seeds; all trainings are repeated for each")
      ->delimiter(',')
      ->capture_default_str();
  accuracy.add_option(
      "--results",
      flags.accuracy.results,
      "file that results are appended to; results already in it are not measured again");

  CLI::App& table = *app.add_subcommand(
      "table", "accuracy, size and time by bits, for docs/accuracy.md; proves nothing");
  add_training_flags(table, flags.table.training, 0);
  std::vector<std::string> tabled;
  for (const TableNetwork& network : table_networks()) tabled.push_back(network.name);
  table.add_option("--networks", flags.table.networks, "only these")
      ->check(CLI::IsMember(tabled))
      ->delimiter(',');
  table.add_option("--widths", flags.table.widths, "only these bits")
      ->check(CLI::IsMember(table_widths()))
      ->delimiter(',');
  table.add_option("--ways", flags.table.ways, "only these columns")
      ->check(CLI::IsMember(table_ways()))
      ->delimiter(',');
  table.add_option("--seeds", flags.table.seeds, "seeds; everything is repeated for each")
      ->delimiter(',')
      ->capture_default_str();
  table.add_option("--results", flags.table.results, "as in accuracy")->required();
  table.add_option("--cache", flags.table.cache, "folder for spoken words and their features")
      ->capture_default_str();
  table.add_option("--part", flags.table.part, "which part of the work this process does, from 0")
      ->check(CLI::Range(0, 1023))
      ->capture_default_str();
  table.add_option("--parts", flags.table.parts, "number of processes that share the file")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  table.add_flag("--print", flags.table.print_only, "trains nothing, prints the table");

  CLI::App& observers = *app.add_subcommand(
      "observers", "what each way to choose ranges costs, in QAT and without; proves nothing");
  add_training_flags(observers, flags.observers.training);
  add_bits_flag(observers, flags.observers.bits);
  observers.add_option("--seeds", flags.observers.seeds, "seeds; everything is repeated for each")
      ->delimiter(',')
      ->capture_default_str();
  observers.add_option("--test", flags.observers.test, "measure on the first N images; 0: all")
      ->check(CLI::Range(int64_t{0}, kMany))
      ->capture_default_str();
  observers.add_option("--only", flags.kinds, "only images, or only data with rare events")
      ->check(CLI::IsMember({"images", "rare"}))
      ->delimiter(',')
      ->capture_default_str();
}

bool run(const CLI::App& app, const Flags& flags) {
  set_threads(flags.threads);
  const auto wanted = [&](const char* proof) {
    const std::string_view name = proof;
    const bool proves =
        name != "accuracy" && name != "observers" && name != "quantized" && name != "table";
    return app.get_subcommands().empty() ? proves : app.got_subcommand(proof);
  };
  if (app.got_subcommand("memory")) return prove_memory();
  bool held = true;
  if (wanted("sums")) held = prove_sums(flags.most_terms) && held;
  if (wanted("random")) held = prove_random_parity(flags.random_networks) && held;
  if (app.got_subcommand("random") || app.got_subcommand("sums")) return held;

  Subjects subjects;
  for (const std::string& folder : flags.data) {
    subjects.data.push_back({examples::dataset_name(folder),
                             Dataset::mnist(folder, Split::kTrain),
                             Dataset::mnist(folder, Split::kTest)});
  }
  for (const examples::Network& network : examples::networks()) {
    if (std::count(flags.networks.begin(), flags.networks.end(), network.name) > 0)
      subjects.networks.push_back(network);
  }
  if (wanted("parity"))
    held = prove_parity(subjects, flags.training, flags.bits, flags.every_layer) && held;
  if (wanted("determinism")) held = prove_determinism(subjects, flags.training) && held;
  if (wanted("quantized"))
    held = prove_quantized(flags.quantized, subjects.data[0], flags.training) && held;
  if (wanted("table")) measure_table(subjects.data, flags.table);
  if (wanted("accuracy")) measure_accuracy(subjects, flags.accuracy);
  if (wanted("observers")) {
    ObserverOptions options = flags.observers;
    options.images = std::count(flags.kinds.begin(), flags.kinds.end(), "images") > 0;
    options.rare = std::count(flags.kinds.begin(), flags.kinds.end(), "rare") > 0;
    measure_observers(subjects, options);
  }
  return held;
}

}  // namespace
}  // namespace quantrain::proofs

int main(int argc, char** argv) {
  using namespace quantrain::proofs;
  Flags flags;
  CLI::App app("Runs the long proofs: parity, random, sums and determinism unless one is named.");
  add_flags(app, flags);
  try {
    app.parse(argc, argv);
    const bool held = run(app, flags);
    if (!app.got_subcommand("table"))
      std::cout << (held ? "All of it holds.\n" : "NOT ALL OF IT HOLDS.\n");
    return held ? 0 : 1;
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return 0;
  } catch (const std::exception& error) {
    std::cout << std::flush;
    std::cerr << "prove: " << error.what() << '\n';
    return 1;
  }
}
