#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "quant/analysis/parity.hpp"

namespace quantrain::examples {

/// Median microseconds of one call, for each batch size in kBatches.
struct CallTimes {
  static constexpr int64_t kBatches[] = {1, 64, 256};
  double microseconds[3] = {};

  /// Microseconds per sample, in the largest batch.
  double per_sample() const { return microseconds[2] / static_cast<double>(kBatches[2]); }
};

/// Times `calls` warm calls of call(batch) for each batch size.
CallTimes time_calls(int calls, const std::function<void(int64_t batch)>& call);

/// The last part of a data set's path, such as "fashion-mnist".
std::string dataset_name(const std::string& folder);

/// All results of a run. Accuracies are fractions, and so are the JSON values whose keys end in
/// `_equal`.
struct Report {
  std::string model;
  std::string dataset;
  std::string score = "accuracy";  ///< what the `accuracy` members hold; also their key in JSON
  int threads = 0;
  uint64_t seed = 0;
  int64_t batch = 0;
  std::string isa;

  struct Float {
    double accuracy = 0.0;
    std::vector<double> seconds_per_epoch;
    int64_t size_bytes = 0;
  } trained;
  struct Ptq {
    double accuracy = 0.0;
  } ptq;
  struct Qat {
    double accuracy = 0.0;
    std::vector<double> seconds_per_epoch;
  } qat;
  struct Integer {
    double accuracy = 0.0;
    int weight_bits = 8;
    int activation_bits = 8;
    int64_t size_bytes = 0;    ///< weights, biases and parameters
    int64_t memory_bytes = 0;  ///< RAM to run one sample
    CallTimes times;
  } integer;
  CallTimes float_times;
  /// Score of a float network that was trained on the inputs before they became codes; none if the
  /// inputs were bytes.
  std::optional<double> float_inputs;
  quant::Parity parity;
};

/// The report as JSON, with the process's peak memory so far.
std::string to_json(const Report& report);
/// The table at the end of a run.
std::ostream& operator<<(std::ostream& stream, const Report& report);

}  // namespace quantrain::examples
