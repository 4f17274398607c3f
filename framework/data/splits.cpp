#include "framework/data/splits.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <variant>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"

namespace quantrain {
namespace {

constexpr const char* kSplit = "split";
constexpr int64_t kMostClasses = int64_t{1} << 31;  // labels have 32 bits
constexpr int64_t kMostSamples = int64_t{1} << 48;  // more indices than any memory holds

using Parts = std::vector<std::vector<int64_t>>;

void check_fractions(std::span<const double> fractions) {
  if (fractions.empty()) throw DataError(kSplit, "there is no fraction: write {0.8, 0.2}");
  double sum = 0.0;
  for (const double fraction : fractions) {
    if (!(fraction > 0.0) || fraction > 1.0)
      throw DataError(kSplit, "a fraction is ", fraction, ", expected more than 0 and at most 1");
    sum += fraction;
  }
  constexpr double kRounding = 1e-9;  // rounding may give slightly more than 1
  if (sum > 1.0 + kRounding) throw DataError(kSplit, "the fractions sum to ", sum, ", above 1");
}

/// Computes how many samples of a group go to each part. Called for one group after the other: the
/// rounding error of a group's sizes is carried over to the next group.
class Apportion {
 public:
  explicit Apportion(std::span<const double> fractions)
      : fractions_(fractions), owed_(fractions.size(), 0.0) {}

  std::vector<int64_t> operator()(int64_t n) {
    const size_t parts = fractions_.size();
    std::vector<double> exact(parts);
    double sum = 0.0;
    for (size_t p = 0; p < parts; ++p) {
      exact[p] = static_cast<double>(n) * fractions_[p] + owed_[p];
      sum += exact[p];
    }
    const int64_t total = std::clamp<int64_t>(std::llround(sum), 0, n);
    std::vector<int64_t> sizes(parts);
    for (size_t p = 0; p < parts; ++p)
      sizes[p] = std::max<int64_t>(static_cast<int64_t>(std::floor(exact[p])), 0);
    const auto lacks = [&](size_t a, size_t b) {
      return exact[a] - static_cast<double>(sizes[a]) < exact[b] - static_cast<double>(sizes[b]);
    };
    std::vector<size_t> order(parts);
    std::iota(order.begin(), order.end(), 0);
    int64_t left = total - std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    for (; left > 0; --left) ++sizes[*std::max_element(order.begin(), order.end(), lacks)];
    for (; left < 0; ++left) --*std::max_element(sizes.begin(), sizes.end());
    // An empty part takes a sample from the largest part if that has at least two, otherwise one
    // that is in no part.
    int64_t outside = n - std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    for (int64_t& size : sizes) {
      if (size > 0) continue;
      const auto largest = std::max_element(sizes.begin(), sizes.end());
      if (*largest >= 2) {
        --*largest;
      } else if (outside > 0) {
        --outside;
      } else {
        continue;
      }
      ++size;
    }
    for (size_t p = 0; p < parts; ++p) owed_[p] = exact[p] - static_cast<double>(sizes[p]);
    return sizes;
  }

 private:
  std::span<const double> fractions_;
  std::vector<double> owed_;
};

void shuffle(std::span<int64_t> indices, Random& random) {
  for (size_t left = indices.size(); left > 1; --left)
    std::swap(indices[left - 1],
              indices[static_cast<size_t>(random.below(static_cast<int64_t>(left)))]);
}

/// Appends the first sizes[0] indices to part 0, the next sizes[1] to part 1, and so on.
void distribute(std::span<const int64_t> indices, const std::vector<int64_t>& sizes, Parts& parts) {
  size_t at = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    const auto size = static_cast<size_t>(sizes[p]);
    parts[p].insert(parts[p].end(),
                    indices.begin() + static_cast<std::ptrdiff_t>(at),
                    indices.begin() + static_cast<std::ptrdiff_t>(at + size));
    at += size;
  }
}

Parts sorted(Parts parts) {
  for (std::vector<int64_t>& part : parts) std::sort(part.begin(), part.end());
  return parts;
}

/// The error for a part that lacks a class.
[[noreturn]] void missing(int64_t label, size_t part, size_t parts, int64_t count) {
  throw DataError(kSplit,
                  "class ",
                  label,
                  " has no sample in part ",
                  part,
                  " of ",
                  parts,
                  "; the data set has ",
                  count,
                  " of this class: ",
                  count < static_cast<int64_t>(parts)
                      ? "collect more, or leave the class out"
                      : "use a stratified split or larger fractions");
}

template <class Data>
std::vector<Data> subsets(const Data& dataset, const Parts& parts) {
  std::vector<Data> result;
  for (const std::vector<int64_t>& part : parts) result.push_back(dataset.subset(part));
  return result;
}

Parts labelled_parts(std::span<const int32_t> labels,
                     int64_t classes,
                     std::span<const double> fractions,
                     const SplitOptions& options) {
  if (options.stratified) return stratified_indices(labels, classes, fractions, options.seed);
  const Parts parts = split_indices(static_cast<int64_t>(labels.size()), fractions, options.seed);
  const std::vector<int64_t> all = class_counts(labels, classes);
  for (size_t p = 0; p < parts.size(); ++p) {
    std::vector<int32_t> of_part;
    for (const int64_t i : parts[p]) of_part.push_back(labels[static_cast<size_t>(i)]);
    const std::vector<int64_t> counts = class_counts(of_part, classes);
    for (size_t c = 0; c < counts.size(); ++c) {
      if (counts[c] == 0) missing(static_cast<int64_t>(c), p, parts.size(), all[c]);
    }
  }
  return parts;
}

}  // namespace

std::vector<int64_t> class_counts(std::span<const int32_t> labels, int64_t classes) {
  if (classes < 1 || classes > kMostClasses)
    throw DataError(
        "class_counts", "number of classes is ", classes, ", expected 1 to ", kMostClasses);
  std::vector<int64_t> counts(static_cast<size_t>(classes), 0);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= classes) {
      throw DataError(
          "class_counts", "label ", labels[i], " at ", i, " is outside [0, ", classes, ")");
    }
    ++counts[static_cast<size_t>(labels[i])];
  }
  return counts;
}

std::vector<std::vector<int64_t>> split_indices(int64_t n,
                                                std::span<const double> fractions,
                                                uint64_t seed) {
  check_fractions(fractions);
  if (n < 1 || n > kMostSamples)
    throw DataError(kSplit, n, " samples cannot be split, expected 1 to ", kMostSamples);
  std::vector<int64_t> indices(static_cast<size_t>(n));
  std::iota(indices.begin(), indices.end(), 0);
  Random random(seed);
  shuffle(indices, random);
  const std::vector<int64_t> sizes = Apportion(fractions)(n);
  for (size_t p = 0; p < sizes.size(); ++p) {
    if (sizes[p] == 0)
      throw DataError(kSplit,
                      "part ",
                      p,
                      " of ",
                      sizes.size(),
                      " gets none of ",
                      n,
                      " samples: use fewer parts");
  }
  Parts parts(fractions.size());
  distribute(indices, sizes, parts);
  return sorted(std::move(parts));
}

std::vector<std::vector<int64_t>> stratified_indices(std::span<const int32_t> labels,
                                                     int64_t classes,
                                                     std::span<const double> fractions,
                                                     uint64_t seed) {
  check_fractions(fractions);
  const std::vector<int64_t> counts = class_counts(labels, classes);
  std::vector<std::vector<int64_t>> of_class(counts.size());
  for (size_t i = 0; i < labels.size(); ++i)
    of_class[static_cast<size_t>(labels[i])].push_back(static_cast<int64_t>(i));
  Parts parts(fractions.size());
  Apportion apportion(fractions);
  for (size_t c = 0; c < of_class.size(); ++c) {
    const std::vector<int64_t> sizes = apportion(counts[c]);
    for (size_t p = 0; p < sizes.size(); ++p) {
      if (sizes[p] == 0) missing(static_cast<int64_t>(c), p, sizes.size(), counts[c]);
    }
    Random random(seed, c + 1);
    shuffle(of_class[c], random);
    distribute(of_class[c], sizes, parts);
  }
  return sorted(std::move(parts));
}

std::vector<TensorDataset> split(const TensorDataset& dataset,
                                 const std::vector<double>& fractions,
                                 const SplitOptions& options) {
  if (!std::holds_alternative<Labels>(dataset.targets()))
    return subsets(dataset, split_indices(dataset.size(), fractions, options.seed));
  return subsets(dataset, labelled_parts(dataset.labels(), dataset.classes(), fractions, options));
}

std::vector<Dataset> split(const Dataset& dataset,
                           const std::vector<double>& fractions,
                           const SplitOptions& options) {
  return subsets(dataset, labelled_parts(dataset.labels(), dataset.classes(), fractions, options));
}

std::vector<float> rows_at(std::span<const float> values,
                           int64_t width,
                           std::span<const int64_t> indices) {
  if (width < 1 || values.size() % static_cast<size_t>(width) != 0)
    throw DataError(kSplit, values.size(), " values do not form rows of ", width);
  const auto rows = static_cast<int64_t>(values.size()) / width;
  std::vector<float> result;
  result.reserve(indices.size() * static_cast<size_t>(width));
  for (const int64_t i : indices) {
    if (i < 0 || i >= rows) throw DataError(kSplit, "row ", i, " is outside [0, ", rows, ")");
    const std::span<const float> row =
        values.subspan(static_cast<size_t>(i * width), static_cast<size_t>(width));
    result.insert(result.end(), row.begin(), row.end());
  }
  return result;
}

}  // namespace quantrain
