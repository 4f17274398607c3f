#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "framework/data/batch_source.hpp"
#include "framework/data/sample_array.hpp"

namespace quantrain {

/// One class for each sample, for a classifier.
struct Labels {
  std::vector<int32_t> of;  ///< [N], in [0, classes)
  int64_t classes = 0;
};

/// For an autoencoder: the target is the first input after augmentation. (To train a network that
/// removes noise, use noisy samples as inputs and the clean samples as targets.)
struct SameAsInput {};

/// The targets of a network: none, labels, tensors, or the input.
using Targets = std::variant<std::monostate, Labels, std::vector<SampleArray>, SameAsInput>;

/// Samples of one or several inputs with their targets. A cheap handle on immutable data.
///   TensorDataset{SampleArray::encoded({n, 3}, values, range, features), Labels{labels, 4}}
///   TensorDataset{SampleArray::floats({n, 3}, x), SampleArray::floats({n, 1}, y)}   regression
class TensorDataset : public BatchSource {
 public:
  // Copies only: a moved-from data set would be empty.
  TensorDataset(const TensorDataset&) = default;
  TensorDataset& operator=(const TensorDataset&) = default;
  /// Shapes: inputs [N, ...] each, with rank 2 or more; targets [N] labels, or [N, ...] each.
  /// Throws: DataError if the numbers of samples differ, there is no input, an input has rank 1, or
  /// a label is out of range.
  TensorDataset(std::vector<SampleArray> inputs, Targets targets);
  TensorDataset(SampleArray input, Targets targets);
  TensorDataset(SampleArray input, SampleArray target);

  int64_t size() const { return size_; }
  const std::vector<SampleArray>& inputs() const& { return data_->inputs; }
  std::vector<SampleArray> inputs() const&& { return data_->inputs; }
  const Targets& targets() const& { return data_->targets; }
  Targets targets() const&& { return data_->targets; }

  /// Throws: DataError if targets are not labels.
  int64_t classes() const { return labelled().classes; }
  /// Throws: DataError if targets are not labels, or i is not in [0, size()).
  int32_t label(int64_t i) const;
  /// Labels of all samples, in their order.
  std::vector<int32_t> labels() const;

  /// The first n samples. Throws: DataError unless 1 <= n <= size().
  TensorDataset first(int64_t n) const;
  /// These samples, in this order, for example a part that split() chose. Shares the data.
  /// Throws: DataError if indices is empty, or an index is not in [0, size()).
  TensorDataset subset(std::span<const int64_t> indices) const;
  /// Samples [begin, end). Throws: DataError unless 0 <= begin < end <= size().
  Batch batch(int64_t begin, int64_t end) const;
  /// Index of sample i in inputs() and targets(), which hold all samples even if this data set
  /// is a part of another.
  int64_t row(int64_t i) const;

  std::optional<int64_t> samples() const override { return size_; }
  Reader read(const Pass& pass) const override;

 private:
  struct Data {
    std::vector<SampleArray> inputs;
    Targets targets;
  };
  const Labels& labelled() const;
  Batch make(std::span<const int64_t> indices, const Pass& pass) const;

  std::shared_ptr<const Data> data_;
  std::shared_ptr<const std::vector<int64_t>> rows_;  // null: samples 0 to size_ - 1
  int64_t size_ = 0;
};

}  // namespace quantrain
