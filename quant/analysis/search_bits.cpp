#include "quant/analysis/search_bits.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/core/text_table.hpp"
#include "framework/metrics/evaluate.hpp"
#include "layers/evaluate.hpp"
#include "quant/analysis/number_text.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"

namespace quantrain::quant {
namespace {

constexpr const char* kSearch = "search_bits";

void check_goal(const SearchOptions& options) {
  const BitsGoal& goal = options.goal;
  const int entries = int{goal.bytes.has_value()} + int{goal.ram.has_value()} +
                      int{goal.multiply_adds.has_value()} + int{goal.tolerance.has_value()};
  if (entries != 1) {
    throw DataError(kSearch,
                    "the goal has ",
                    entries,
                    " entries: set one of bytes, ram, multiply_adds and tolerance");
  }
  const auto refuse = [](const char* name, auto value) {
    throw DataError(kSearch, "the goal's ", name, " must be positive, got ", value);
  };
  if (goal.bytes && *goal.bytes < 1) refuse("bytes", *goal.bytes);
  if (goal.ram && *goal.ram < 1) refuse("ram", *goal.ram);
  if (goal.multiply_adds && !(*goal.multiply_adds > 0.0))
    refuse("multiply_adds", *goal.multiply_adds);
  if (goal.tolerance && !(*goal.tolerance >= 0.0))
    throw DataError(kSearch, "the goal's tolerance must be at least 0, got ", *goal.tolerance);
  if (options.points < 0)
    throw DataError(kSearch, "points must not be negative, got ", options.points);
}

double cost(const BitCosts& costs, Saving save) {
  return save == Saving::kBytes ? static_cast<double>(costs.bytes) : costs.multiply_adds;
}

class Search {
 public:
  Search(Module& net,
         const DataLoader& calibration,
         const DataLoader& data,
         const Recipe& recipe,
         const SearchOptions& options)
      : net_(net),
        calibration_(calibration),
        data_(data),
        recipe_(recipe),
        options_(options),
        example_(first_inputs(calibration, kSearch)),
        save_(options.goal.multiply_adds ? Saving::kMultiplyAdds
              : options.goal.tolerance   ? options.save
                                         : Saving::kBytes) {
    for (std::vector<int>* list : {&choices_.weights, &choices_.outputs})
      std::sort(list->begin(), list->end(), std::greater<>());
  }

  SearchResult run() {
    const std::unique_ptr<Module> floats = float_copy(net_, recipe_, kSearch);
    floats->eval();
    parts_ = choosable_parts(*floats, example_, recipe_.config);
    in_float_ = predict_outputs(*floats, data_);
    result_.metric = options_.metric;
    result_.save = save_;
    result_.in_float = options_.metric == kOutputError
                           ? 0.0
                           : evaluate(*floats, data_, {options_.metric}).at(options_.metric);
    result_.sensitivity = sensitivity(net_,
                                      calibration_,
                                      data_,
                                      recipe_,
                                      {.bits = choices_, .metric = std::string(kOutputError)});
    make_path();
    const size_t at = options_.goal.tolerance ? meet_tolerance() : meet_budget();
    for (int64_t k = 0; k < options_.points; ++k) {
      const double share =
          static_cast<double>(k) / static_cast<double>(std::max<int64_t>(options_.points - 1, 1));
      row(static_cast<size_t>(std::lround(share * static_cast<double>(path_.size() - 1))));
    }
    return finish(at);
  }

 private:
  const std::vector<int>& choices(LayerPart part) const {
    return part == LayerPart::kWeights ? choices_.weights : choices_.outputs;
  }

  double error(const ChoosablePart& part, int bits) const {
    const LayerSensitivity* const row = result_.sensitivity.find(part.layer, part.part, bits);
    return row == nullptr ? 0.0 : row->value * row->value;
  }

  /// Configurations from the most bits to the fewest: each lowers one part of the one before.
  void make_path() {
    BitsOfParts bits;
    for (const ChoosablePart& part : parts_) {
      if (!choices(part.part).empty()) bits[{part.layer, part.part}] = choices(part.part)[0];
    }
    path_.push_back(bits);
    model_.emplace(made(bits).first.program());
    while (true) {
      const double now = cost(model_->with(bits), save_);
      double most = 0.0;
      BitsOfParts next;
      for (const ChoosablePart& part : parts_) {
        const std::vector<int>& list = choices(part.part);
        if (list.empty()) continue;
        int& own = bits[{part.layer, part.part}];
        const int before = own;
        for (const int lower : list) {
          if (lower >= before) continue;
          own = lower;
          const double saved = now - cost(model_->with(bits), save_);
          const double added = std::max(error(part, lower) - error(part, before), kNoise);
          if (saved / added > most) {
            most = saved / added;
            next = bits;
          }
        }
        own = before;
      }
      if (next.empty()) return;
      bits = next;
      path_.push_back(bits);
    }
  }

  QConfig config_of(const BitsOfParts& bits) const {
    QConfig config = recipe_.config;
    for (const ChoosablePart& part : parts_) {
      const auto own = bits.find({part.layer, part.part});
      if (own == bits.end()) continue;
      const LayerConfig usual = recipe_.config.of(part.type, part.layer);
      LayerConfig& layer = config.layers.emplace(part.layer, usual).first->second;
      (part.part == LayerPart::kWeights ? layer.weight.bits : layer.activation.bits) = own->second;
    }
    return config;
  }

  /// The converted model, and the metric of its integers.
  std::pair<IntegerModel, double> made(const BitsOfParts& bits) const {
    const std::unique_ptr<Module> copy = float_copy(net_, recipe_, kSearch);
    copy->eval();
    prepare_ptq(*copy, example_, config_of(bits));
    calibrate(*copy, calibration_);
    if (!options_.methods.empty()) improve(*copy, calibration_, options_.methods);
    IntegerModel model = convert(*copy, example_);
    const double value = options_.metric == kOutputError
                             ? output_error(in_float_, predict_outputs(model, data_))
                             : evaluate(model, data_, {options_.metric}).at(options_.metric);
    return {std::move(model), value};
  }

  /// The row of a configuration of the path, which is run the first time.
  const SearchedBits& row(size_t at) {
    const auto found = rows_.find(at);
    if (found != rows_.end()) return found->second;
    const auto [model, value] = made(path_[at]);
    return rows_
        .emplace(at,
                 SearchedBits{.config = config_of(path_[at]),
                              .costs = costs_of(model.program()),
                              .value = value,
                              .bits = text(path_[at])})
        .first->second;
  }

  size_t meet_budget() {
    const BitsGoal& goal = options_.goal;
    const auto meets = [&](const BitCosts& costs) {
      return goal.bytes ? costs.bytes <= *goal.bytes
             : goal.ram ? costs.ram <= *goal.ram
                        : costs.multiply_adds <= *goal.multiply_adds;
    };
    for (size_t at = 0; at < path_.size(); ++at) {
      if (meets(model_->with(path_[at])) && meets(row(at).costs)) return at;
    }
    const BitCosts least = row(path_.size() - 1).costs;
    if (goal.ram) {
      throw QuantError(kSearch,
                       "a budget of ",
                       *goal.ram,
                       " bytes of RAM cannot be met: the network takes ",
                       least.ram,
                       " at any bits, because values take a byte for each code: make its largest "
                       "values smaller");
    }
    throw QuantError(kSearch,
                     "a budget of ",
                     goal.bytes ? static_cast<double>(*goal.bytes) : *goal.multiply_adds,
                     goal.bytes ? " bytes" : " multiply-adds",
                     " cannot be met: with the fewest bits it takes ",
                     cost(least, save_),
                     ": raise it, allow fewer bits (SearchOptions::bits), or make the network "
                     "smaller");
  }

  double worse(const SearchedBits& row) const {
    const double difference = row.value - result_.in_float;
    return smaller_is_better(options_.metric) ? difference : -difference;
  }

  size_t meet_tolerance() {
    const double tolerance = *options_.goal.tolerance;
    if (worse(row(0)) > tolerance) {
      throw QuantError(kSearch,
                       "a tolerance of ",
                       tolerance,
                       " cannot be met: with the most bits, ",
                       options_.metric,
                       " is ",
                       row(0).value,
                       ", in float ",
                       result_.in_float,
                       ": allow more, allow more bits (SearchOptions::bits), use methods "
                       "(SearchOptions::methods), or train with prepare_qat");
    }
    size_t good = 0;
    size_t bad = path_.size();
    while (bad - good > 1) {
      const size_t middle = good + (bad - good) / 2;
      (worse(row(middle)) <= tolerance ? good : bad) = middle;
    }
    return good;
  }

  std::string text(const BitsOfParts& bits) const {
    std::string all;
    const auto of = [&](const std::string& layer, LayerPart part) {
      const auto own = bits.find({layer, part});
      return own == bits.end() ? std::string("-") : std::to_string(own->second);
    };
    std::string last;
    for (const ChoosablePart& part : parts_) {
      if (part.layer == last) continue;
      last = part.layer;
      all += (all.empty() ? "" : ", ") + part.layer + ": " + of(last, LayerPart::kWeights) + "/" +
             of(last, LayerPart::kOutput);
    }
    return all;
  }

  SearchResult finish(size_t at) {
    std::vector<std::pair<size_t, SearchedBits>> sorted(rows_.begin(), rows_.end());
    std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) {
      const double cost_a = cost(a.second.costs, save_);
      const double cost_b = cost(b.second.costs, save_);
      return cost_a < cost_b || (cost_a == cost_b && worse(a.second) < worse(b.second));
    });
    double best = std::numeric_limits<double>::infinity();
    for (auto& [position, searched] : sorted) {
      searched.best = worse(searched) < best;
      best = std::min(best, worse(searched));
      if (position == at) {
        result_.chosen = result_.rows.size();
        result_.config = searched.config;
      }
      result_.rows.push_back(std::move(searched));
    }
    return std::move(result_);
  }

  // Errors below this, relative to the outputs' spread, are no reason to prefer a layer.
  static constexpr double kNoise = 1e-9;

  Module& net_;
  const DataLoader& calibration_;
  const DataLoader& data_;
  const Recipe& recipe_;
  const SearchOptions& options_;
  std::vector<Tensor> example_;
  Saving save_;
  BitChoices choices_ = options_.bits;
  std::vector<ChoosablePart> parts_;
  std::vector<Tensor> in_float_;
  std::optional<CostModel> model_;
  std::vector<BitsOfParts> path_;
  std::map<size_t, SearchedBits> rows_;
  SearchResult result_;
};

}  // namespace

SearchResult search_bits(Module& net,
                         const DataLoader& calibration,
                         const DataLoader& data,
                         const Recipe& recipe,
                         const SearchOptions& options) {
  const DefaultRounding rounding;
  check_goal(options);
  validate(options.bits, kSearch);
  check_targets(data, options.metric, kSearch);
  return Search(net, calibration, data, recipe, options).run();
}

std::ostream& operator<<(std::ostream& stream, const SearchResult& result) {
  TextTable table("lrrrrl");
  table.add({"", "bytes", "RAM", "multiply-adds", result.metric, "weights/output of each layer"});
  for (size_t i = 0; i < result.rows.size(); ++i) {
    const SearchedBits& row = result.rows[i];
    table.add({std::string(i == result.chosen ? ">" : " ") + (row.best ? "*" : " "),
               grouped(row.costs.bytes),
               grouped(row.costs.ram),
               grouped(std::llround(row.costs.multiply_adds)),
               number_text(row.value),
               row.bits});
  }
  return stream << result.metric << " in float: " << number_text(result.in_float) << '\n' << table;
}

}  // namespace quantrain::quant
