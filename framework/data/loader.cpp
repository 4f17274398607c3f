#include "framework/data/loader.hpp"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "framework/core/rounding.hpp"

namespace quantrain {
namespace {

// No image has this index: the shuffle's random numbers are nobody else's.
constexpr uint64_t kShuffleIndex = std::numeric_limits<uint64_t>::max();

}  // namespace

/// Prepares batch after batch in its own thread, one ahead of the consumer.
class DataLoader::Iterator::Prefetch {
 public:
  explicit Prefetch(const DataLoader& loader)
      : loader_(loader), order_(loader.order()), thread_([this] { run(); }) {}
  ~Prefetch() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// A process that fork() made has no such thread.
  bool is_ours() const { return process_ == ::getpid(); }

  /// The next batch, or nothing after the last. Throws what preparing it threw.
  std::optional<Batch> next() {
    if (!is_ours()) {
      throw DataError("loader",
                      "the iterator's thread is in another process, which forked into this one: "
                      "begin a new pass here");
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ready_ || ended_; });
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    std::optional<Batch> batch = std::exchange(ready_, std::nullopt);
    lock.unlock();
    changed_.notify_all();
    return batch;
  }

 private:
  void run() {
    const DefaultRounding rounding;
    std::exception_ptr error;
    try {
      for (int64_t i = 0; i < loader_.batches(); ++i) {
        if (!put(make(i))) return;
      }
    } catch (...) {
      error = std::current_exception();
    }
    // The batch before the end, or before the error, comes first.
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_ || stop_; });
    error_ = error;
    ended_ = true;
    lock.unlock();
    changed_.notify_all();
  }

  bool put(Batch batch) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_ || stop_; });
    if (stop_) return false;
    ready_ = std::move(batch);
    lock.unlock();
    changed_.notify_all();
    return true;
  }

  Batch make(int64_t number) const {
    const Dataset& dataset = loader_.dataset_;
    const LoaderOptions& options = loader_.options_;
    const Shape& shape = dataset.image_shape();
    const int64_t begin = number * options.batch;
    const int64_t size = std::min(options.batch, dataset.size() - begin);
    const auto pixels = static_cast<size_t>(shape.elements());
    Batch batch;
    Buffer<uint8_t> bytes(size * shape.elements());
    for (int64_t i = 0; i < size; ++i) {
      const int64_t index = order_[static_cast<size_t>(begin + i)];
      const std::span<const uint8_t> image = dataset.image(index);
      const std::span<uint8_t> own = std::span(bytes.data() + i * shape.elements(), pixels);
      std::copy(image.begin(), image.end(), own.begin());
      if (options.augment) {
        Random random(
            options.seed, static_cast<uint64_t>(loader_.epoch_), static_cast<uint64_t>(index));
        options.augment({own, shape, dataset.zero_byte()}, random);
      }
      batch.labels.push_back(dataset.label(index));
    }
    batch.images = dataset.to_tensor(std::move(bytes));
    return batch;
  }

  const DataLoader loader_;
  const std::vector<int64_t> order_;
  const pid_t process_ = ::getpid();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Batch> ready_;
  std::exception_ptr error_;
  bool ended_ = false;
  bool stop_ = false;
  std::thread thread_;  // last: it uses all of the above
};

DataLoader::DataLoader(Dataset dataset, LoaderOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)) {
  if (options_.batch < 1)
    throw DataError("loader", "batch is ", options_.batch, ", expected at least 1");
  if (batches() == 0) {
    throw DataError(
        "loader", "drop_last leaves nothing: ", dataset_.size(), " images, batch ", options_.batch);
  }
}

DataLoader& DataLoader::epoch(int64_t epoch) & {
  if (epoch < 0) throw DataError("loader", "epoch is ", epoch);
  epoch_ = epoch;
  return *this;
}

DataLoader DataLoader::epoch(int64_t epoch) && { return std::move(this->epoch(epoch)); }

int64_t DataLoader::batches() const {
  const int64_t full = dataset_.size() / options_.batch;
  return options_.drop_last || dataset_.size() % options_.batch == 0 ? full : full + 1;
}

std::vector<int64_t> DataLoader::order() const {
  std::vector<int64_t> order(static_cast<size_t>(dataset_.size()));
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
DataLoader::Iterator& DataLoader::Iterator::operator=(Iterator&&) noexcept = default;
DataLoader::Iterator::~Iterator() {
  // Nobody to stop, and nobody to wait for.
  if (prefetch_ != nullptr && !prefetch_->is_ours()) static_cast<void>(prefetch_.release());
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
