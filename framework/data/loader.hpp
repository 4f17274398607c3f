#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "framework/data/batch_source.hpp"
#include "framework/data/dataset.hpp"

namespace quantrain {

struct LoaderOptions {
  int64_t batch = 64;
  bool shuffle = false;
  uint64_t seed = 0;
  Transform augment = nullptr;  ///< applied to every sample's first input; random_shift(2)
  bool drop_last = false;       ///< leave out a last batch that is not full
  /// Mixes every sample with another one, by Beta(mixup, mixup): in [0.01, 1], usually 0.2; 0:
  /// none. Labels stay the sample's own, targets[0] says what it is a mixture of:
  /// cross_entropy(net(batch.images), batch.targets[0]).
  double mixup = 0.0;
};

/// The batches of one epoch after the other:
///   for (const Batch& batch : loader.epoch(e)) ...
/// The next batch is prepared in a thread of its own while one is used. Order and augmentation
/// depend on seed, epoch and index alone, so an epoch is the same every time that it is run.
class DataLoader {
 public:
  /// Throws: DataError if the batch is less than 1, drop_last would leave no batch, samples that
  /// come one after the other are to be shuffled, mixup is out of range, or source is null.
  explicit DataLoader(std::shared_ptr<const BatchSource> source, LoaderOptions options = {});
  /// Of a copy: DataLoader{dataset, {.batch = 32, .shuffle = true}}.
  template <std::derived_from<BatchSource> Source>
  explicit DataLoader(Source source, LoaderOptions options = {})
      : DataLoader(std::make_shared<const Source>(std::move(source)), std::move(options)) {}

  /// Which epoch begin() runs, from now on; 0 at first. Returns *this; of a temporary, the loader
  /// itself, which a loop over DataLoader{...}.epoch(e) keeps.
  /// Throws: DataError if it is negative.
  DataLoader& epoch(int64_t epoch) &;
  DataLoader epoch(int64_t epoch) &&;
  int64_t epoch() const { return epoch_; }

  /// Batches of an epoch.   Throws: DataError if only the end of a stream tells how many there are.
  int64_t batches() const;
  /// Samples of an epoch; nothing: only its end tells.
  std::optional<int64_t> samples() const { return source_->samples(); }
  std::shared_ptr<const BatchSource> source() const { return source_; }
  const LoaderOptions& options() const& { return options_; }
  LoaderOptions options() && { return std::move(options_); }
  /// Samples in the order of the current epoch.   Throws: DataError as batches().
  std::vector<int64_t> order() const;

  /// One pass over an epoch. What the source or a transform throws arrives where the batch would
  /// have.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = Batch*;
    using reference = Batch&;

    Iterator(Iterator&&) noexcept;
    Iterator& operator=(Iterator&&) noexcept;
    ~Iterator();  ///< stops and joins the thread

    /// The caller's, to move from too, until the next increment.
    Batch& operator*() const& { return batch_; }
    Batch operator*() && { return std::move(batch_); }
    Batch* operator->() const& { return &batch_; }
    Batch* operator->() && = delete;
    /// Throws: DataError at the end, or if it was moved from.
    Iterator& operator++();
    bool operator==(std::default_sentinel_t) const { return prefetch_ == nullptr; }

   private:
    friend class DataLoader;
    class Prefetch;
    explicit Iterator(const DataLoader& loader);

    std::unique_ptr<Prefetch> prefetch_;  // null at the end
    mutable Batch batch_;
  };

  /// The loader may be changed or destroyed while the iterator lives.
  Iterator begin() const { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  int64_t known_samples() const;

  std::shared_ptr<const BatchSource> source_;
  LoaderOptions options_;
  int64_t epoch_ = 0;
};

}  // namespace quantrain
