#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include "framework/data/dataset.hpp"

// Parts of a data set: for training, validation and test. They depend on seed and labels alone.
namespace quantrain {

struct SplitOptions {
  uint64_t seed = 0;
  bool stratified =
      true;  ///< each part has the classes' shares of the whole; ignored without labels
};

/// Samples of each class, [classes].   Throws: DataError if a label is outside [0, classes).
std::vector<int64_t> class_counts(std::span<const int32_t> labels, int64_t classes);
/// Of a Dataset or TensorDataset with labels.
template <class Data>
std::vector<int64_t> class_counts(const Data& data) requires requires {
  { data.classes() } -> std::convertible_to<int64_t>;
}
{ return class_counts(data.labels(), data.classes()); }

/// Numbers of the samples of each part, ascending; what fractions leave of 1 is in no part. Sizes
/// are the nearest to n * fraction whose sum is right.
/// Throws: DataError unless fractions are positive and their sum is at most 1, or if a part has no
/// sample.
std::vector<std::vector<int64_t>> split_indices(int64_t n,
                                                std::span<const double> fractions,
                                                uint64_t seed = 0);
/// The same by labels: each class is split by these fractions, and has a sample in each part.
/// Throws: DataError also naming the class that has not enough samples for that.
std::vector<std::vector<int64_t>> stratified_indices(std::span<const int32_t> labels,
                                                     int64_t classes,
                                                     std::span<const double> fractions,
                                                     uint64_t seed = 0);

/// The parts of a data set: auto parts = split(dataset, {0.8, 0.2}). They share its values.
/// Throws: DataError as the functions above, also if a class is missing in a part that was drawn
/// without stratification.
std::vector<TensorDataset> split(const TensorDataset& dataset,
                                 const std::vector<double>& fractions,
                                 const SplitOptions& options = {});
std::vector<Dataset> split(const Dataset& dataset,
                           const std::vector<double>& fractions,
                           const SplitOptions& options = {});

/// Rows of these numbers, one after the other: what normalization is fitted on.
/// Shapes: values [N, width]  ->  [indices, width].
/// Throws: DataError if values are no rows of that width, or there is no such row.
std::vector<float> rows_at(std::span<const float> values,
                           int64_t width,
                           std::span<const int64_t> indices);

}  // namespace quantrain
