#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "framework/core/random.hpp"
#include "framework/data/batch.hpp"
#include "framework/data/transforms.hpp"

namespace quantrain {

/// What the batches of an epoch depend on besides the data.
struct Pass {
  int64_t epoch = 0;
  uint64_t seed = 0;
  Transform augment = nullptr;
  double mixup = 0.0;  ///< alpha; 0: none

  /// The random numbers of a sample.
  Random random(int64_t index) const {
    return Random(seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index));
  }
};

/// What a DataLoader makes batches from: Dataset, TensorDataset, Stream, or one's own.
class BatchSource {
 public:
  /// The batch of these samples, in this order. A stream gives fewer at its end, and none after it.
  /// Called from one thread, one call after the other.
  using Reader = std::function<Batch(std::span<const int64_t> indices)>;

  virtual ~BatchSource() = default;

  /// Samples of an epoch; nothing: only its end tells.
  virtual std::optional<int64_t> samples() const = 0;
  /// Whether samples come in any order; otherwise they come from 0 on, one after the other.
  virtual bool any_order() const { return true; }
  /// The reader outlives the source.
  /// Throws: DataError if the pass asks for what the data cannot give.
  virtual Reader read(const Pass& pass) const = 0;

 protected:
  BatchSource() = default;
  BatchSource(const BatchSource&) = default;
  BatchSource& operator=(const BatchSource&) = default;
};

}  // namespace quantrain
