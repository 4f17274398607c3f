#include "tests/proofs/results.hpp"

#include <cmath>
#include <cstdio>
#include <fstream>

#include "framework/core/error.hpp"

namespace quantrain::proofs {

Results::Results(const std::string& path) : path_(path) {
  std::ifstream file(path);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    Json result = Json::parse(line, nullptr, false);
    if (!result.is_object() || !result.contains("settings") || !result.contains("measured"))
      throw DataError("results", path, ": line ", number, " is no result");
    results_.push_back(std::move(result));
  }
}

const Results::Json* Results::find(const Json& settings) const {
  for (const Json& result : results_) {
    if (result["settings"] == settings) return &result["measured"];
  }
  return nullptr;
}

void Results::add(const Json& settings, const Json& measured) {
  const Json result{{"settings", settings}, {"measured", measured}};
  const std::string line = result.dump() + '\n';
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
  results_.push_back(result);
  if (path_.empty()) return;
  std::ofstream file(path_, std::ios::app);
  if (!(file << line << std::flush)) throw DataError("results", path_, ": cannot be written");
}

Statistics statistics(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0.0;
  for (const double value : values) sum += value;
  double squares = 0.0;
  for (const double value : values) squares += (value - sum / n) * (value - sum / n);
  return {sum / n, n > 1 ? std::sqrt(squares / (n - 1)) : 0.0};
}

}  // namespace quantrain::proofs
