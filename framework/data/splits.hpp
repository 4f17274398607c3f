#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include "framework/data/dataset.hpp"

// Splits a data set into parts for training, validation and test. For given fractions, the parts
// depend only on the seed, the number of samples and, if stratified, their labels.
namespace quantrain {

struct SplitOptions {
  uint64_t seed = 0;
  bool stratified = true;  ///< each part has the same share of each class; ignored without labels
};

/// Number of samples of each class, [classes].
/// Throws: DataError if a label is outside [0, classes), or classes is not in [1, 2^31].
std::vector<int64_t> class_counts(std::span<const int32_t> labels, int64_t classes);
/// The same for a Dataset or TensorDataset with labels.
template <class Data>
std::vector<int64_t> class_counts(const Data& data) requires requires {
  { data.classes() } -> std::convertible_to<int64_t>;
}
{ return class_counts(data.labels(), data.classes()); }

/// Indices of the samples of each part, ascending. If the fractions sum to less than 1, the
/// remaining samples are in no part. The size of a part is n * fraction, rounded up or down so that
/// the sizes sum to round(n * (sum of the fractions)). A part that would be empty gets a sample
/// from the largest part if that has at least two, otherwise one that would be in no part.
/// Throws: DataError if there are no fractions, a fraction is not positive, their sum is above 1, n
/// is not in [1, 2^48], or there are fewer samples than parts.
std::vector<std::vector<int64_t>> split_indices(int64_t n,
                                                std::span<const double> fractions,
                                                uint64_t seed = 0);
/// The same for each class: each class is split by these fractions and has a sample in each part.
/// The rounding errors of a class's sizes carry over to the next class.
/// Throws: DataError if split_indices() would refuse the fractions, if class_counts() would refuse
/// the labels, or if a class, which the message names, has fewer samples than there are parts.
std::vector<std::vector<int64_t>> stratified_indices(std::span<const int32_t> labels,
                                                     int64_t classes,
                                                     std::span<const double> fractions,
                                                     uint64_t seed = 0);

/// Splits a data set: auto parts = split(dataset, {0.8, 0.2}). The parts share its values.
/// Throws: DataError like the functions above, or if a part lacks a class in a split that is not
/// stratified.
std::vector<TensorDataset> split(const TensorDataset& dataset,
                                 const std::vector<double>& fractions,
                                 const SplitOptions& options = {});
std::vector<Dataset> split(const Dataset& dataset,
                           const std::vector<double>& fractions,
                           const SplitOptions& options = {});

/// The rows with these indices, one after the other, for example to fit a normalization to them.
/// Shapes: values [N, width]  ->  [indices, width].
/// Throws: DataError if `values` does not hold whole rows of this width, or a row does not exist.
std::vector<float> rows_at(std::span<const float> values,
                           int64_t width,
                           std::span<const int64_t> indices);

}  // namespace quantrain
