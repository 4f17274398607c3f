#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "framework/data/batch_source.hpp"
#include "framework/data/sample_array.hpp"

namespace quantrain {

/// A sample as a generator gives it.
struct StreamSample {
  std::vector<float> values;       ///< raw, as many as the stream's shape has elements
  int32_t label = 0;               ///< where there are classes
  std::vector<float> target = {};  ///< where there is a target's shape
};

/// Gives the next sample; nothing at the end.
using SampleGenerator = std::function<std::optional<StreamSample>()>;

struct StreamOptions {
  Shape shape;                      ///< of one sample
  std::optional<Range> range = {};  ///< values become codes of it; none: floats without codes
  InputFeatures features = {};      ///< with a range: what values go through before
  Outside outside = Outside::kRefuse;
  int64_t classes = 0;                  ///< above 0: samples have labels in [0, classes)
  std::optional<Shape> target = {};     ///< samples have targets of this shape
  std::optional<int64_t> samples = {};  ///< of an epoch; none: the generator's end tells
};

/// Samples that are made while they are used, in one order: a microphone, a simulation, files that
/// do not fit into memory. Each epoch begins with start(epoch), whose generator is called in the
/// loader's thread. Of a stream of declared length, no more samples than that are asked for.
/// Reading throws: DataError naming sample and epoch if start or generator throw, it ends before
/// the declared length or gives none at all, or if a sample does not fit the declared shapes, range
/// and classes.
class Stream : public BatchSource {
 public:
  /// Throws: DataError if start is null, a shape is empty, the length is below 1 or classes are
  /// negative; QuantError as SampleArray::bytes.
  Stream(std::function<SampleGenerator(int64_t epoch)> start, StreamOptions options);

  const StreamOptions& options() const& { return *options_; }
  StreamOptions options() const&& { return *options_; }

  std::optional<int64_t> samples() const override { return options_->samples; }
  bool any_order() const override { return false; }
  Reader read(const Pass& pass) const override;

 private:
  std::function<SampleGenerator(int64_t epoch)> start_;
  std::shared_ptr<const StreamOptions> options_;
};

}  // namespace quantrain
