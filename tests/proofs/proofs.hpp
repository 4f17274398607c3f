#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "examples/networks.hpp"
#include "framework/data/dataset.hpp"

// The tests check small networks and data; these proofs check the same properties on whole networks
// and data sets. Each proof prints its results; a function that returns bool returns whether the
// checked property held.
namespace quantrain::proofs {

struct Images {
  std::string name;
  Dataset train;
  Dataset test;
};

/// The data and networks that a proof uses.
struct Subjects {
  std::vector<Images> data;
  std::vector<examples::Network> networks;
};

/// How long networks are trained.
struct Training {
  int64_t epochs = 1;
  int64_t qat_epochs = 1;
  int64_t limit = 12800;  ///< use only the first `limit` training images; 0: all
};

/// Trains a network in float. The seed determines its weights and the order of its data.
Sequential train_float(const examples::Network& network,
                       const Images& images,
                       const Training& training,
                       uint64_t seed);
/// Continues to train a network from train_float(). The network is in float or was prepared for
/// quantization.
void train_on(Module& net, const Images& images, const Training& training, uint64_t seed);
/// One training image.
Tensor example_of(const Images& images);

/// Runs verify_parity on all test images, for each number of bits of weights and activations.
/// `every_layer` prints all layers, not only those of networks that differ.
bool prove_parity(const Subjects& subjects,
                  const Training& training,
                  const std::vector<int>& bits,
                  bool every_layer);

/// Runs verify_parity on this number of random networks.
bool prove_random_parity(int64_t networks);

/// Checks that training gives the same saved model, byte for byte, on each usable x86-64
/// instruction set that has fused multiply-adds, and on one of them also with 2 threads. If there
/// is none, uses only the chosen instruction set.
bool prove_determinism(const Subjects& subjects, const Training& training);

/// Checks sums of up to `most` terms, in every operation that makes long sums: the error may be at
/// most four times that of pairwise sums, or four units in the last place if that is more.
bool prove_sums(int64_t most);

/// Imports each file NAME.onnx of a folder that tests/proofs/quantized_peer.py wrote, converts it,
/// and compares the codes of each layer with those in NAME: at most 0.1 % may differ, each by 1, if
/// the layer gets the same codes. Then trains on for training.qat_epochs and converts again: the
/// accuracy on the test images may fall by 0.5 %. Files of tests/proofs/qonnx_rules.py must give
/// its results to 1e-5 of the largest, simulated in floats.
bool prove_quantized(const std::string& folder, const Images& images, const Training& training);

/// Prints a table in Markdown: for each network of table_networks(), by bits, the bytes of its file
/// and those that a loaded model keeps, fast and small (KeepWeights), as malloc() and the pool
/// count them; the RAM of a run of one sample; and the speed of the small model against the fast
/// one, on one thread. Checks that a small model keeps at most 1.15 of its file and that RAM, and
/// no more than the fast one. Needs glibc.
bool prove_memory();

struct AccuracyOptions {
  Training training{.epochs = 3, .qat_epochs = 1, .limit = 0};
  std::vector<uint64_t> seeds{0, 1, 2, 3, 4};
  std::vector<int> bits{8, 4};
  std::string results = {};  ///< file of JSON lines; a result that it has is not measured again
};

/// Prints the test accuracies of these networks: the float network; the float network trained on
/// for qat_epochs without quantization; and, for each number of bits, the networks trained by QAT
/// with the integer and with the float simulation. The latter is measured in its simulation and
/// deployed. For each seed, all further trainings start from the same float weights. Each accuracy
/// is a mean and deviation over seeds. Processes that run at the same time may share the file of
/// results.
void measure_accuracy(const Subjects& subjects, const AccuracyOptions& options);

struct TableOptions {
  Training training{.epochs = 0, .qat_epochs = 0, .limit = 0};  ///< epochs 0: the network's own
  std::vector<uint64_t> seeds{0, 1, 2};
  std::vector<std::string> networks;            ///< of table_networks(); empty: all
  std::vector<std::string> widths;              ///< of table_widths(); empty: all
  std::vector<std::string> ways;                ///< of table_ways(); empty: all
  std::string results = {};                     ///< as in AccuracyOptions
  std::string cache = "keyword_spotting_data";  ///< folder for spoken words
  int part = 0, parts = 1;  ///< this process trains each `parts`-th network and seed
  bool print_only = false;  ///< trains nothing, prints the results so far
};

/// How a network gets its integers, such as "qat": the columns of the table.
std::vector<std::string> table_ways();
/// The table's bits of weights and activations, such as "W4A4".
std::vector<std::string> table_widths();

/// Prints a table in Markdown: for each data set and network of table_networks(), test accuracy in
/// float and in integers by bits of weights and activations, after quantization without training,
/// plain and improved by quant/methods, and after QAT; mean and deviation over seeds, of the last
/// epoch; and the model's bytes, RAM, and time for an image on one core. What was not measured yet
/// is a dash.
void measure_table(const std::vector<Images>& data, const TableOptions& options);

struct ObserverOptions {
  Training training{.epochs = 2, .qat_epochs = 1, .limit = 6400};
  std::vector<uint64_t> seeds{0, 1, 2};
  std::vector<int> bits{8, 4, 3, 2};
  int64_t test = 5000;  ///< measure on the first test images; 0: on all
  bool images = true;   ///< whether to measure the examples' networks
  bool rare = true;     ///< whether to measure data with rare events
};

/// Prints what each way to choose ranges costs: the accuracy of the examples' networks, and the
/// score of the rare samples of rare_events.hpp, after QAT and after quantization without training,
/// for each number of bits. All start from the same float weights for each seed. A cell is the mean
/// and the standard deviation over seeds. Each job runs in one thread, threads() jobs at a time;
/// the numbers do not depend on that. Single results go to the standard error stream as they come.
void measure_observers(const Subjects& subjects, const ObserverOptions& options);

}  // namespace quantrain::proofs
