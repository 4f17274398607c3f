#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "framework/data/batch_source.hpp"
#include "framework/data/sample_array.hpp"

namespace quantrain {

/// A sample from a generator.
struct StreamSample {
  std::vector<float> values;       ///< raw values, one for each element of the stream's shape
  int32_t label = 0;               ///< if the stream has classes
  std::vector<float> target = {};  ///< if the stream has a target shape
};

/// Returns the next sample, or nothing at the end.
using SampleGenerator = std::function<std::optional<StreamSample>()>;

struct StreamOptions {
  Shape shape;                      ///< of one sample
  std::optional<Range> range = {};  ///< values become codes of this range; none: plain floats
  InputFeatures features = {};      ///< offsets and scales for the values; only with a range
  Outside outside = Outside::kRefuse;
  int64_t classes = 0;                  ///< above 0: samples have labels in [0, classes)
  std::optional<Shape> target = {};     ///< samples have targets of this shape
  std::optional<int64_t> samples = {};  ///< length of an epoch; none: the generator decides
};

/// Samples that are produced while they are used, in a fixed order. They come for example from a
/// microphone, a simulation, or files that do not fit into memory. Each epoch begins with
/// start(epoch), which returns a generator. The loader calls the generator in a thread of its own.
/// If `samples` is set, the loader asks for no more samples than that.
/// Throws: DataError naming sample and epoch, from read() or from the Reader that it returns, if
/// start() throws or returns no generator; if the generator throws, ends before the declared length
/// or gives no sample at all; or if a value is not finite before or after offset and scale; or if a
/// sample does not fit the declared shapes and classes or, with Outside::kRefuse, leaves the
/// declared range. With Outside::kRefuseMost, a batch of which most values lie outside is refused.
/// read() also throws DataError if pass.mixup is not 0.
class Stream : public BatchSource {
 public:
  // Copies only: a moved-from stream would be empty.
  Stream(const Stream&) = default;
  Stream& operator=(const Stream&) = default;
  /// Throws: DataError if start is null, a shape is empty, samples is below 1, classes is negative,
  /// or there are features without a range; QuantError like SampleArray::bytes().
  Stream(std::function<SampleGenerator(int64_t epoch)> start, StreamOptions options);

  const StreamOptions& options() const& { return *options_; }
  StreamOptions options() const&& { return *options_; }

  std::optional<int64_t> samples() const override { return options_->samples; }
  bool any_order() const override { return false; }
  /// Samples that are left out are generated, but neither checked nor converted.
  bool can_skip() const override { return true; }
  Reader read(const Pass& pass) const override;

 private:
  std::function<SampleGenerator(int64_t epoch)> start_;
  std::shared_ptr<const StreamOptions> options_;
};

}  // namespace quantrain
