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
#include "framework/distributed/sharding.hpp"

namespace quantrain {

struct LoaderOptions {
  int64_t batch = 64;
  bool shuffle = false;
  uint64_t seed = 0;
  Transform augment = nullptr;  ///< applied to every sample's first input, e.g. random_shift(2)
  bool drop_last = false;       ///< leaves out the last batch if it is not full
  /// Adds the samples of a last batch that is not full to the batch before it, which then has up to
  /// 2 * batch - 1 samples. For networks that need several samples in each batch, such as those
  /// with batch norms, where no sample shall be left out.
  bool merge_last = false;
  /// Mixes every sample with another one, with weights from Beta(mixup, mixup). mixup is 0 (no
  /// mixing) or in [0.01, 1]; 0.2 is usual. If the data set has labels, batch.labels stay the
  /// labels of the samples, and targets[0] holds the shares of the classes, which
  /// cross_entropy(net(batch.input), batch) uses.
  double mixup = 0.0;
};

/// Iterates over the batches of an epoch:
///   for (const Batch& batch : loader.epoch(e)) ...
/// A thread prepares the next batch while the caller uses the current one; if the system refuses a
/// thread, the caller's does, and a line on standard error says so once. Order and augmentation
/// depend only on seed, epoch and index, so an epoch is the same every time it runs.
class DataLoader {
 public:
  // Copies only: a moved-from loader would have no source.
  DataLoader(const DataLoader&) = default;
  DataLoader& operator=(const DataLoader&) = default;
  /// Throws: DataError if source is null; if the batch size is less than 1, or above 2^24 and the
  /// source does not declare its number of samples; if drop_last and merge_last are both set, or
  /// merge_last is, but the source does not declare its number of samples; if mixup is out of
  /// range; if shuffle is set, but the source has a fixed order (any_order() is false); or if the
  /// number of samples is known and there would be no batch, for example because drop_last leaves
  /// out the only one.
  explicit DataLoader(std::shared_ptr<const BatchSource> source, LoaderOptions options = {});
  /// Loads from a copy of the source: DataLoader{dataset, {.batch = 32, .shuffle = true}}.
  template <std::derived_from<BatchSource> Source>
  explicit DataLoader(Source source, LoaderOptions options = {})
      : DataLoader(std::make_shared<const Source>(std::move(source)), std::move(options)) {}

  /// Sets the epoch that begin() runs; 0 at first. Returns *this. On a temporary, returns the
  /// loader by value, so that a loop over DataLoader{...}.epoch(e) keeps the loader alive.
  /// Throws: DataError if epoch is negative.
  DataLoader& epoch(int64_t epoch) &;
  DataLoader epoch(int64_t epoch) &&;
  int64_t epoch() const { return epoch_; }

  /// A loader of the same epochs whose iterator gives shards in place of batches: of each batch,
  /// one after the other, those of sharding.rank. It reads no other samples.
  /// Throws: DataError if a full batch has fewer samples than shards, there are no shards, the rank
  /// is not below the number of ranks, the number of samples is not declared, or there are several
  /// ranks and the source cannot skip samples (BatchSource::can_skip()).
  DataLoader sharded(const Sharding& sharding) const;
  /// Number of samples in batch i.   Throws: DataError like batches(), or if there is no batch i.
  int64_t batch_size(int64_t i) const;

  /// Number of batches in an epoch.   Throws: DataError if the number is known only at the end.
  int64_t batches() const;
  /// Number of samples in an epoch, including those that drop_last leaves out. Empty if the number
  /// is known only at the end.
  std::optional<int64_t> samples() const { return source_->samples(); }
  std::shared_ptr<const BatchSource> source() const { return source_; }
  const LoaderOptions& options() const& { return options_; }
  LoaderOptions options() && { return std::move(options_); }
  /// Indices of the samples, in the order of the current epoch. A pass without shuffle needs no
  /// such list.
  /// Throws: DataError like batches(), or if there are more than 2^40 samples.
  std::vector<int64_t> order() const;

  /// One pass over an epoch. If the source or a transform throws while it makes a batch, the
  /// iterator rethrows the exception in place of the batch.
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

    /// The batch belongs to the caller until the next increment. The caller may move from it.
    Batch& operator*() const& { return batch_; }
    Batch operator*() && { return std::move(batch_); }
    Batch* operator->() const& { return &batch_; }
    Batch* operator->() && = delete;
    /// Throws: DataError if the iterator is at its end, was moved from, or is used in a child
    /// process after fork(), where its thread does not exist.
    Iterator& operator++();
    bool operator==(std::default_sentinel_t) const { return prefetch_ == nullptr; }

   private:
    friend class DataLoader;
    class Prefetch;
    explicit Iterator(const DataLoader& loader);
    void stop() noexcept;

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
  std::optional<Sharding> sharding_;
  int64_t epoch_ = 0;
};

}  // namespace quantrain
