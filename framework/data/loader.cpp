#include "framework/data/loader.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "framework/core/rounding.hpp"
#include "framework/core/system/process.hpp"
#include "framework/data/mixup.hpp"

namespace quantrain {
namespace {

// No sample has this index, so the shuffle shares its random numbers with no sample.
constexpr uint64_t kShuffleIndex = std::numeric_limits<uint64_t>::max();

// Limits the list of indices of a batch if the source does not declare its number of samples.
constexpr int64_t kLargestBatch = int64_t{1} << 24;

// A shuffled epoch is a list of all indices.
constexpr int64_t kMostListed = int64_t{1} << 40;

}  // namespace

/// Prepares batch after batch in its own thread, one ahead of the consumer; of shards, those of one
/// batch.
class DataLoader::Iterator::Prefetch {
 public:
  explicit Prefetch(const DataLoader& loader)
      : loader_(loader),
        ahead_(loader.sharding_
                   ? std::max<int64_t>(loader.sharding_->own(loader.sharding_->shards).size(), 1)
                   : 1),
        samples_(loader.samples()),
        order_(loader.options_.shuffle ? loader.order() : std::vector<int64_t>()) {
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {  // next() makes the batches
      static std::atomic<bool> is_said = false;
      if (!is_said.exchange(true))
        std::fprintf(stderr, "quantrain: a loader prepares no batch ahead: %s\n", error.what());
    }
  }
  ~Prefetch() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// False in a child process after fork(), where the thread does not exist.
  bool is_ours() const { return process_ == system::process_id(); }

  /// The next batch, or nothing after the last one. Rethrows an exception from the thread.
  std::optional<Batch> next() {
    if (!is_ours()) {
      throw DataError("loader",
                      "the iterator's thread exists only in the parent process: begin a new pass "
                      "after fork()");
    }
    if (!thread_.joinable()) {
      const DefaultRounding rounding;
      return make();
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty() || ended_; });
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    if (ready_.empty()) return std::nullopt;
    std::optional<Batch> batch = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return batch;
  }

 private:
  void run() {
    const DefaultRounding rounding;
    std::exception_ptr error;
    try {
      while (std::optional<Batch> batch = make()) {
        if (!put(std::move(*batch))) break;
      }
    } catch (...) {
      error = std::current_exception();
    }
    // The consumer takes the last batch before it sees the end or the error.
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ready_.empty() || stop_; });
    error_ = error;
    ended_ = true;
    lock.unlock();
    changed_.notify_all();
  }

  bool put(Batch batch) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return std::ssize(ready_) < ahead_ || stop_; });
    if (stop_) return false;
    ready_.push_back(std::move(batch));
    lock.unlock();
    changed_.notify_all();
    return true;
  }

  /// The next batch of the epoch, or nothing after the last one.
  std::optional<Batch> make() {
    const LoaderOptions& options = loader_.options_;
    if (!read_) {
      read_ = loader_.source_->read({.epoch = loader_.epoch_,
                                     .seed = options.seed,
                                     .augment = options.augment,
                                     .mixup = options.mixup});
    }
    if (loader_.sharding_) return make_shard();
    if (is_last_ || (samples_ && begin_ >= *samples_)) return std::nullopt;
    int64_t wanted = samples_ ? std::min(options.batch, *samples_ - begin_) : options.batch;
    if (options.drop_last && wanted < options.batch) return std::nullopt;
    const int64_t after = samples_ ? *samples_ - begin_ - wanted : 0;
    if (options.merge_last && after < options.batch) wanted += after;
    Batch batch = read_(numbers(begin_, wanted));
    begin_ += wanted;
    const int64_t got = batch.size();
    is_last_ = got < wanted;
    if (got == 0 || (options.drop_last && got < options.batch)) return std::nullopt;
    return batch;
  }

  /// The next of our shards, or nothing after the last one.
  std::optional<Batch> make_shard() {
    const Sharding& sharding = *loader_.sharding_;
    while (shard_ == own_.end) {
      if (index_ == loader_.batches()) return std::nullopt;
      begin_ = index_ * loader_.options_.batch;
      size_ = loader_.batch_size(index_++);
      shards_ = sharding.count(size_, loader_.options_.batch);
      own_ = sharding.own(shards_);
      shard_ = own_.begin;
    }
    const Sharding::Interval part = Sharding::part(size_, shards_, shard_++);
    return read_(numbers(begin_ + part.begin, part.size()));
  }

  /// Indices of the samples at positions [begin, begin + n) of the epoch.
  std::span<const int64_t> numbers(int64_t begin, int64_t n) {
    if (loader_.options_.shuffle)
      return std::span(order_).subspan(static_cast<size_t>(begin), static_cast<size_t>(n));
    order_.resize(static_cast<size_t>(n));
    std::iota(order_.begin(), order_.end(), begin);
    return order_;
  }

  const DataLoader loader_;
  const int64_t ahead_;  // of shards, our part of a batch
  const std::optional<int64_t> samples_;
  std::vector<int64_t> order_;  // without shuffle: indices of the current batch
  BatchSource::Reader read_;
  int64_t begin_ = 0;     // of the next batch
  bool is_last_ = false;  // whether the source has no more samples
  // Of a loader of shards: the current batch.
  int64_t index_ = 0;   // of the batch after it
  int64_t size_ = 0;    // its samples
  int64_t shards_ = 0;  // and shards
  Sharding::Interval own_;
  int64_t shard_ = 0;  // the next one to read
  const int64_t process_ = system::process_id();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  std::exception_ptr error_;
  bool ended_ = false;
  bool stop_ = false;
  std::thread thread_;  // last, because it uses all of the above; none if the system refused it
};

DataLoader::DataLoader(std::shared_ptr<const BatchSource> source, LoaderOptions options)
    : source_(std::move(source)), options_(std::move(options)) {
  if (source_ == nullptr) throw DataError("loader", "the source of data is null");
  if (options_.batch < 1)
    throw DataError("loader", "batch is ", options_.batch, ", expected at least 1");
  if (!samples().has_value() && options_.batch > kLargestBatch) {
    throw DataError("loader",
                    "batch is ",
                    options_.batch,
                    ", expected at most ",
                    kLargestBatch,
                    " for a source whose number of samples is not declared");
  }
  if (options_.merge_last && (options_.drop_last || !samples().has_value())) {
    throw DataError("loader",
                    options_.drop_last
                        ? "drop_last and merge_last are both set: choose what happens to a last "
                          "batch that is not full"
                        : "merge_last needs the number of samples, which this source does not "
                          "declare (a Stream takes it as StreamOptions::samples)");
  }
  check_mixup(options_.mixup);
  // A list of indices of a batch.
  if (options_.batch > kMostListed && samples().value_or(0) > kMostListed)
    throw DataError("loader", "batch is ", options_.batch, ", expected at most 2^40");
  if (options_.shuffle && !source_->any_order()) {
    throw DataError(
        "loader",
        "a stream has one order and cannot be shuffled: leave out shuffle, shuffle what "
        "the generator reads, or collect the samples in a TensorDataset");
  }
  if (samples().has_value() && batches() == 0) {
    throw DataError("loader",
                    "drop_last leaves nothing: ",
                    *samples(),
                    " samples, batch ",
                    options_.batch,
                    "; take a smaller batch, or leave out drop_last");
  }
}

DataLoader& DataLoader::epoch(int64_t epoch) & {
  if (epoch < 0) throw DataError("loader", "epoch is ", epoch, ", expected at least 0");
  epoch_ = epoch;
  return *this;
}

DataLoader DataLoader::epoch(int64_t epoch) && { return std::move(this->epoch(epoch)); }

DataLoader DataLoader::sharded(const Sharding& sharding) const {
  const auto fail = [](const auto&... parts) { throw DataError("loader", parts...); };
  if (sharding.shards < 1) fail("shards is ", sharding.shards, ", expected at least 1");
  if (sharding.shards > options_.batch)
    fail("a batch of ",
         options_.batch,
         " samples has no ",
         sharding.shards,
         " shards: set shards (FitOptions::shards) to at most ",
         options_.batch,
         ", or take a larger batch");
  if (sharding.rank < 0 || sharding.rank >= sharding.ranks)
    fail("there is no rank ", sharding.rank, " of ", sharding.ranks);
  static_cast<void>(known_samples());
  if (sharding.ranks > 1 && !source_->can_skip())
    fail(
        "a rank reads only its own samples, but this source gives every sample in turn: override "
        "BatchSource::can_skip()");
  DataLoader loader = *this;
  loader.sharding_ = sharding;
  return loader;
}

int64_t DataLoader::batch_size(int64_t i) const {
  const int64_t all = batches();
  if (i < 0 || i >= all) throw DataError("loader", "there is no batch ", i, " of ", all);
  const int64_t begin = i * options_.batch;
  return i + 1 < all || options_.drop_last ? options_.batch : known_samples() - begin;
}

int64_t DataLoader::known_samples() const {
  const std::optional<int64_t> n = samples();
  if (n.has_value()) return *n;
  throw DataError("loader",
                  "the number of samples is known only at the end of this source: declare the "
                  "number (a Stream takes it as StreamOptions::samples)");
}

int64_t DataLoader::batches() const {
  const int64_t n = known_samples();
  const int64_t full = n / options_.batch;
  const bool drops = options_.drop_last || (options_.merge_last && full > 0);
  return drops || n % options_.batch == 0 ? full : full + 1;
}

std::vector<int64_t> DataLoader::order() const {
  const int64_t samples = known_samples();
  if (samples > kMostListed)
    throw DataError(
        "loader", "a list of ", samples, " samples: an order that is listed has at most 2^40");
  std::vector<int64_t> order(static_cast<size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  if (!options_.shuffle) return order;
  Random random(options_.seed, static_cast<uint64_t>(epoch_), kShuffleIndex);
  for (size_t left = order.size(); left > 1; --left) {  // Fisher and Yates
    std::swap(order[left - 1],
              order[static_cast<size_t>(random.below(static_cast<int64_t>(left)))]);
  }
  return order;
}

DataLoader::Iterator::Iterator(const DataLoader& loader)
    : prefetch_(std::make_unique<Prefetch>(loader)) {
  ++*this;
}
DataLoader::Iterator::Iterator(Iterator&&) noexcept = default;
DataLoader::Iterator& DataLoader::Iterator::operator=(Iterator&& other) noexcept {
  if (this == &other) return *this;
  stop();
  prefetch_ = std::move(other.prefetch_);
  batch_ = std::move(other.batch_);
  return *this;
}
DataLoader::Iterator::~Iterator() { stop(); }

void DataLoader::Iterator::stop() noexcept {
  // A forked process has no thread to stop and join, so the memory is leaked there.
  if (prefetch_ != nullptr && !prefetch_->is_ours()) static_cast<void>(prefetch_.release());
  prefetch_.reset();
}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  if (prefetch_ == nullptr)
    throw DataError("loader",
                    "the iterator is at its end or was moved from: there is no next batch");
  if (std::optional<Batch> batch = prefetch_->next()) {
    batch_ = std::move(*batch);
  } else {
    prefetch_.reset();
  }
  return *this;
}

}  // namespace quantrain
