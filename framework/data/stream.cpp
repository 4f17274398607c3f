#include "framework/data/stream.hpp"

#include <cmath>
#include <exception>
#include <string>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/data/mixup.hpp"

namespace quantrain {
namespace {

constexpr const char* kStream = "stream";

Shape batch_shape(int64_t n, const Shape& sample) {
  std::vector<int64_t> extents{n};
  extents.insert(extents.end(), sample.begin(), sample.end());
  return Shape(extents);
}

/// Calls a user's function. If the function throws, throws a DataError that names sample and epoch
/// and nests the exception.
template <class F>
auto user_call(int64_t sample, int64_t epoch, const char* what, const F& f) {
  const auto failed = [&](const char* with) {
    return DataError(kStream, "sample ", sample, " of epoch ", epoch, ": ", what, " threw", with);
  };
  try {
    return f();
  } catch (const std::exception& error) {
    std::throw_with_nested(failed((std::string(": ") + error.what()).c_str()));
  } catch (...) {
    std::throw_with_nested(failed(" something that is not a std::exception"));
  }
}

/// One pass over a stream.
class Reading {
 public:
  Reading(std::shared_ptr<const StreamOptions> options, Pass pass, SampleGenerator generator)
      : options_(std::move(options)), pass_(std::move(pass)), generator_(std::move(generator)) {
    if (!generator_) fail("there is no generator: start() returned an empty function");
  }

  Batch operator()(std::span<const int64_t> indices) {
    std::vector<float> values;
    std::vector<float> targets;
    Batch batch;
    while (!indices.empty() && given_ < indices[0] && !ended_) {  // samples of other ranks
      if (next()) {
        ++given_;
      } else {
        end();
      }
    }
    int64_t n = 0;
    for (; n < static_cast<int64_t>(indices.size()) && !ended_; ++n) {
      std::optional<StreamSample> sample = next();
      if (!sample) {
        end();
        break;
      }
      check(*sample);
      values.insert(values.end(), sample->values.begin(), sample->values.end());
      if (options_->classes > 0) batch.labels.push_back(sample->label);
      if (options_->target)
        targets.insert(targets.end(), sample->target.begin(), sample->target.end());
      ++given_;
    }
    if (n == 0) return {};
    const Shape shape = batch_shape(n, options_->shape);
    const SampleArray samples =
        options_->range
            ? SampleArray::encoded(shape,
                                   values,
                                   *options_->range,
                                   options_->features,
                                   options_->outside == Outside::kRefuseMost ? Outside::kRefuseMost
                                                                             : Outside::kSaturate)
            : SampleArray::floats(shape, std::move(values));
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < n; ++i) rows.push_back(i);
    SampleArray::Edit edit;
    if (pass_.augment) {
      edit = [&](size_t i, const SampleView& sample) {
        Random random = pass_.random(indices[i]);
        pass_.augment(sample, random);
      };
    }
    batch.input = samples.tensor(rows, edit);
    if (options_->target)
      batch.targets.push_back(Tensor::from(batch_shape(n, *options_->target), targets));
    return batch;
  }

 private:
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw DataError(kStream, "sample ", given_, " of epoch ", pass_.epoch, ": ", parts...);
  }

  std::optional<StreamSample> next() {
    return user_call(given_, pass_.epoch, "the generator", generator_);
  }

  void end() {
    ended_ = true;
    if (options_->samples && given_ < *options_->samples)
      fail("the generator ended early: ", *options_->samples, " samples were declared");
    if (given_ == 0) fail("the generator gave no sample at all");
  }

  void check(const StreamSample& sample) const {
    const auto count = [&](const char* what, const std::vector<float>& of, const Shape& shape) {
      if (static_cast<int64_t>(of.size()) != shape.elements())
        fail(of.size(), ' ', what, " do not fill shape ", shape);
    };
    count("values", sample.values, options_->shape);
    for (size_t i = 0; i < sample.values.size(); ++i) {
      const float x = sample.values[i];
      if (!std::isfinite(x)) fail("value ", x, " at ", i, " is not finite");
      if (!options_->range) continue;
      const InputFeatures& features = options_->features;
      const float z = integer::feature_value(sample.values, i, features);
      if (!std::isfinite(z))
        fail("value ", x, " at ", i, " is ", z, " after the feature's offset and scale");
      if (options_->outside != Outside::kRefuse) continue;
      if (z < options_->range->min || z > options_->range->max) {
        fail("value ",
             z,
             features.empty() ? "" : " (after the feature's offset and scale)",
             " at ",
             i,
             " is outside the range [",
             options_->range->min,
             ", ",
             options_->range->max,
             "]: declare a wider range, or let values outside it saturate");
      }
    }
    if (options_->classes > 0 && (sample.label < 0 || sample.label >= options_->classes))
      fail("label ", sample.label, " is outside [0, ", options_->classes, ")");
    if (!options_->target) return;
    count("values of the target", sample.target, *options_->target);
    for (size_t i = 0; i < sample.target.size(); ++i) {
      if (!std::isfinite(sample.target[i]))
        fail("target ", sample.target[i], " at ", i, " is not finite");
    }
  }

  std::shared_ptr<const StreamOptions> options_;
  Pass pass_;
  SampleGenerator generator_;
  int64_t given_ = 0;
  bool ended_ = false;
};

}  // namespace

Stream::Stream(std::function<SampleGenerator(int64_t epoch)> start, StreamOptions options)
    : start_(std::move(start)) {
  if (!start_)
    throw DataError(kStream, "there is no start(), which makes the generator of an epoch");
  if (options.shape.rank() < 1 || options.shape.elements() == 0)
    throw DataError(kStream, "samples of shape ", options.shape, ", expected [F] or [H, W, C]");
  if (options.target && options.target->elements() == 0)
    throw DataError(kStream, "targets of shape ", *options.target, " have no elements");
  if (options.samples && *options.samples < 1)
    throw DataError(kStream, "an epoch of ", *options.samples, " samples, expected at least 1");
  if (options.classes < 0)
    throw DataError(kStream, "number of classes is ", options.classes, ", expected at least 0");
  if (options.range) static_cast<void>(integer::input_params(*options.range, kStream));
  if (!options.range && !options.features.empty())
    throw DataError(kStream, "there are features, but no range: set StreamOptions::range, too");
  validate(options.features, options.shape.back(), kStream);
  options_ = std::make_shared<const StreamOptions>(std::move(options));
}

BatchSource::Reader Stream::read(const Pass& pass) const {
  check_mixup(pass.mixup);
  if (pass.mixup > 0.0)
    throw DataError(kStream,
                    "mixup picks samples at random, but a stream gives them one after the other: "
                    "leave out mixup, or collect the samples in a TensorDataset");
  // Copies of the returned function share one pass.
  SampleGenerator generator =
      user_call(0, pass.epoch, "start()", [&] { return start_(pass.epoch); });
  auto reading = std::make_shared<Reading>(options_, pass, std::move(generator));
  return [reading](std::span<const int64_t> indices) { return (*reading)(indices); };
}

}  // namespace quantrain
