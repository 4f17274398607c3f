#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace quantrain::proofs {

/// Results of measurements that take long, in a file of JSON lines: each holds the settings of one
/// measurement, a JSON object, and what was measured with them. A stopped program goes on where its
/// file ends. Processes that run at the same time may append to one file.
class Results {
 public:
  using Json = nlohmann::ordered_json;

  /// Reads the file, if it exists. An empty path: results are only printed.
  /// Throws: DataError naming the line that is no result.
  explicit Results(const std::string& path);

  /// Null if there is no result for these settings.
  const Json* find(const Json& settings) const;

  const std::vector<Json>& all() const { return results_; }

  /// Prints the result, and appends it to the file.
  /// Throws: DataError if the file cannot be written.
  void add(const Json& settings, const Json& measured);

 private:
  std::string path_;
  std::vector<Json> results_;
};

/// Mean and sample standard deviation, which divides by n - 1.
struct Statistics {
  double mean = 0.0;
  double deviation = 0.0;
};
Statistics statistics(const std::vector<double>& values);

}  // namespace quantrain::proofs
