#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "framework/core/random.hpp"
#include "framework/data/batch.hpp"
#include "framework/data/transforms.hpp"

namespace quantrain {

/// One pass over the data: the settings that its batches depend on.
struct Pass {
  int64_t epoch = 0;
  uint64_t seed = 0;
  Transform augment = nullptr;
  double mixup = 0.0;  ///< alpha of mixup; 0: no mixup

  /// The generator of random numbers for sample `index`.
  Random random(int64_t index) const {
    return Random(seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index));
  }
};

/// The source of a DataLoader's batches: Dataset, TensorDataset, Stream, or a class of your own.
class BatchSource {
 public:
  /// Returns the batch of these samples, in this order. The last batch of a stream may have fewer
  /// samples; after the end, batches are empty. Calls come from one thread, one after the other. If
  /// the source can skip, but not read in any order, the indices ascend.
  using Reader = std::function<Batch(std::span<const int64_t> indices)>;

  virtual ~BatchSource() = default;

  /// Number of samples in an epoch. Empty if the number is known only at the end.
  virtual std::optional<int64_t> samples() const = 0;
  /// Whether samples can be read in any order. Otherwise they are read in the order 0, 1, 2, ...
  virtual bool any_order() const { return true; }
  /// Whether a reader may leave out samples, and give those that it is asked for. Each process of a
  /// training on several ranks reads only its own.
  virtual bool can_skip() const { return any_order(); }
  /// Starts a pass and returns its reader, which may outlive the source.
  /// Throws: DataError if the data do not allow the pass, for example mixup without targets.
  virtual Reader read(const Pass& pass) const = 0;

 protected:
  BatchSource() = default;
  BatchSource(const BatchSource&) = default;
  BatchSource& operator=(const BatchSource&) = default;
};

}  // namespace quantrain
