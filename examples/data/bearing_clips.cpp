#include "examples/data/bearing_clips.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>

#include "examples/common/audio.hpp"
#include "examples/data/bearing.hpp"
#include "framework/autograd/ops/mse_loss.hpp"
#include "framework/data/coverage.hpp"
#include "framework/data/features.hpp"
#include "framework/metrics/evaluate.hpp"
#include "framework/metrics/metrics.hpp"

namespace quantrain::examples {
namespace {

constexpr int64_t kRowFrames = 5;
constexpr int64_t kInputs = 640;  // 5 frames of 128 bands
constexpr double kSeconds = 2.0;
// Share of the validation clips that may lie above the threshold.
constexpr double kFalseAlarms = 0.02;

/// Spectrograms of clips, cut into overlapping rows of five frames.
struct Rows {
  std::vector<float> values;        // [clips * rows_of_clip, 640]
  std::vector<BearingFault> clips;  // the fault of each clip
  int64_t rows_of_clip = 0;

  int64_t rows() const { return rows_of_clip * static_cast<int64_t>(clips.size()); }
};

class Recorder {
 public:
  explicit Recorder(uint64_t seed) : seed_(seed), mel_({.bands = kInputs / kRowFrames}) {}

  void add(Rows& rows, BearingFault fault, float severity) {
    const std::vector<float> mel =
        mel_.decibels(bearing_sound(fault, severity, kSeconds, seed_, clip_++));
    constexpr int64_t kBands = kInputs / kRowFrames;
    rows.rows_of_clip = static_cast<int64_t>(mel.size()) / kBands - kRowFrames + 1;
    for (int64_t i = 0; i < rows.rows_of_clip; ++i)
      rows.values.insert(
          rows.values.end(), mel.data() + i * kBands, mel.data() + i * kBands + kInputs);
    rows.clips.push_back(fault);
  }
  Rows healthy(int64_t clips) {
    Rows rows;
    for (int64_t i = 0; i < clips; ++i) add(rows, BearingFault::kNone, 0.0f);
    return rows;
  }
  /// Adds clips with faults. The kinds take turns, and faults range from slight to severe.
  void add_faults(Rows& rows, int64_t clips) {
    const auto kinds = static_cast<int64_t>(kBearingFaults.size());
    for (int64_t i = 0; i < clips; ++i) {
      const float severity = static_cast<float>(i + 1) / static_cast<float>(clips);
      add(rows, kBearingFaults[static_cast<size_t>(i % kinds)], severity);
    }
  }

 private:
  uint64_t seed_;
  uint64_t clip_ = 0;
  MelSpectrogram mel_;
};

/// The mean of (x - y)^2 over all rows of each clip.
std::vector<float> errors_of_clips(const Tensor& x, const Tensor& y, int64_t clips) {
  const Floats a = x.floats(), b = y.floats();
  const int64_t length = x.elements() / clips;
  std::vector<float> errors;
  for (int64_t clip = 0; clip < clips; ++clip) {
    double sum = 0.0;
    for (int64_t i = clip * length; i < (clip + 1) * length; ++i)
      sum += std::pow(double{a[i]} - double{b[i]}, 2.0);
    errors.push_back(static_cast<float>(sum / static_cast<double>(length)));
  }
  return errors;
}

/// Rows for a network.
struct Samples {
  TensorDataset data;
  Tensor x;  // all rows
  std::vector<BearingFault> clips;

  Samples(const Rows& rows, const Range& range, const InputFeatures& features)
      : data(SampleArray::encoded(
                 {rows.rows(), kInputs}, rows.values, range, features, Outside::kSaturate),
             SameAsInput{}),
        x(data.batch(0, data.size()).input),
        clips(rows.clips) {}
  /// Without codes.
  Samples(const Rows& rows, const InputFeatures& features)
      : data(SampleArray::floats({rows.rows(), kInputs}, scaled(rows.values, features)),
             SameAsInput{}),
        x(data.batch(0, data.size()).input),
        clips(rows.clips) {}

  std::vector<float> errors(const Tensor& y) const {
    return errors_of_clips(x, y, static_cast<int64_t>(clips.size()));
  }
  double score(const Tensor& y) const {
    std::vector<uint8_t> faulty;
    for (const BearingFault fault : clips) faulty.push_back(fault == BearingFault::kNone ? 0 : 1);
    return area_under_curve(errors(y), faulty);
  }
  std::vector<float> errors(const IntegerModel& model) const {
    return errors(predict(model, DataLoader(data, {.batch = kEvaluationBatch})));
  }
};

/// Returns a threshold. At most a fraction kFalseAlarms of `errors` lies above it.
float choose_threshold(std::vector<float> errors) {
  std::sort(errors.begin(), errors.end());
  const auto above = static_cast<size_t>(kFalseAlarms * static_cast<double>(errors.size()));
  return errors[errors.size() - 1 - above];
}

std::map<std::string, std::string> deploy(const IntegerModel& model,
                                          const Samples& validation,
                                          const Samples& test) {
  const float threshold = choose_threshold(validation.errors(model));
  const std::vector<float> errors = test.errors(model);
  std::cout << "threshold " << threshold << " of the integer network; above it are";
  for (const BearingFault fault : {BearingFault::kNone,
                                   BearingFault::kOuterRace,
                                   BearingFault::kInnerRace,
                                   BearingFault::kBall}) {
    int64_t above = 0, all = 0;
    for (size_t i = 0; i < errors.size(); ++i) {
      if (test.clips[i] != fault) continue;
      ++all;
      if (errors[i] > threshold) ++above;
    }
    std::cout << (fault == BearingFault::kNone ? " " : ", ") << above << " of " << all << ' '
              << (fault == BearingFault::kNone ? "healthy" : name_of(fault));
  }
  std::cout << '\n';
  return {{"threshold", std::to_string(threshold)},
          {"score", "mean squared error over the normalized rows of a clip"}};
}

}  // namespace

Task detect_faults(const Flags& flags, const Clips& clips) {
  Recorder recorder(flags.seed);
  const Rows training = recorder.healthy(clips.training);
  const Rows validation = recorder.healthy(clips.validation);
  Rows test = recorder.healthy(clips.test);
  recorder.add_faults(test, clips.test);

  const InputFeatures features = fit_mean_std(training.values, kInputs);
  const Range range{-6.0f, 6.0f};  // standard deviations
  for (const std::string& warning : coverage(training.values, range, features).warnings())
    std::cout << "warning: " << warning << '\n';
  const Samples validation_samples(validation, range, features);
  const Samples test_samples(test, range, features);
  Task task = make_task(
      "bearings", Samples(training, range, features).data, test_samples.data, flags.limit);
  task.settings = "--clips " + std::to_string(clips.training);
  task.loss = [](Module& net, Batch& batch) {
    return mse_loss(net(batch.input), batch.targets[0]);
  };
  task.score_name = "area_under_curve";
  task.score = [test_samples](const Tensor& y) { return test_samples.score(y); };
  const Samples float_test(test, features);
  task.float_inputs =
      make_float_inputs(Samples(training, features).data,
                        float_test.data,
                        flags.limit,
                        [float_test](const Tensor& y) { return float_test.score(y); });
  task.deploy = [validation_samples, test_samples](const IntegerModel& model) {
    return deploy(model, validation_samples, test_samples);
  };
  return task;
}

}  // namespace quantrain::examples
