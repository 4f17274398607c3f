#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "quant/analysis/bit_costs.hpp"
#include "quant/analysis/sensitivity.hpp"
#include "quant/methods/method.hpp"

namespace quantrain::quant {

/// What the bits shall achieve: exactly one of these.
struct BitsGoal {
  std::optional<int64_t> bytes{};         ///< at most: BitCosts::bytes
  std::optional<int64_t> ram{};           ///< at most: BitCosts::ram
  std::optional<double> multiply_adds{};  ///< at most: BitCosts::multiply_adds
  /// The metric may be this much worse than in float: 0.01 for a point of accuracy. The search
  /// takes the fewest bytes, or multiply-adds if SearchOptions::save is kMultiplyAdds.
  std::optional<double> tolerance{};
};

enum class Saving { kBytes, kMultiplyAdds };

struct SearchOptions {
  BitsGoal goal{};
  BitChoices bits{};
  std::string metric = "accuracy";
  Saving save = Saving::kBytes;  ///< what a tolerance buys; a budget says it itself
  /// Applied to every network that is tried, after its calibration.
  std::vector<Method> methods{};
  /// Networks that are made and run besides those that the goal needs: more rows for the table.
  int64_t points = 6;
};

/// A network that was made, converted and run as integers.
struct SearchedBits {
  QConfig config;
  BitCosts costs;      ///< of its converted model
  double value = 0.0;  ///< the metric of its integers
  bool best = false;   ///< no other row is better in the metric and as cheap in what is saved
  std::string bits{};  ///< such as "0: 8/4, 3: 4/4": weights and output of each layer
};

struct SearchResult {
  QConfig config;     ///< meets the goal; config.to_json() keeps it
  size_t chosen = 0;  ///< its row
  std::string metric;
  double in_float = 0.0;
  Saving save = Saving::kBytes;
  std::vector<SearchedBits> rows;  ///< Pareto table, the cheapest first
  Sensitivity sensitivity;         ///< output_error of each part alone, which guided the search
};

/// Chooses the bits of each layer's weights and output. Starts with the most bits of all choices,
/// then lowers one part after the other: the part and the bits whose saved cost is largest for the
/// error that they add, as sensitivity() measured it alone (output_error; errors of parts add as
/// squares). On this path it takes the first configuration within the budget, or, for a tolerance,
/// finds by bisection the last one whose integers meet it. Costs and metric of each row are those
/// of the converted model, run on `data`. With multiply-adds, outputs get fewer bits, too; with
/// bytes, only weights, because values take a byte for each code.
/// The trained network, in float or prepared, stays as it was. The recipe says how to make it
/// again, with observers and with the layers to leave in float; its bits do not matter.
/// Throws: DataError unless the goal has exactly one entry, which is positive (a tolerance: at least
/// 0), if the data have neither labels nor targets, which every metric but output_error needs, or
/// if points is negative; QuantError if the goal cannot be met, with what is reached; what
/// sensitivity(), improve() and convert() throw.
SearchResult search_bits(Module& net,
                         const DataLoader& calibration,
                         const DataLoader& data,
                         const Recipe& recipe,
                         const SearchOptions& options);

/// Prints the Pareto table. `*` marks best rows, `>` the chosen one.
std::ostream& operator<<(std::ostream& stream, const SearchResult& result);

}  // namespace quantrain::quant
