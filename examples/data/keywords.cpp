#include "examples/data/keywords.hpp"

#include <array>
#include <iostream>

#include "examples/common/audio.hpp"
#include "examples/data/speech.hpp"
#include "framework/core/error.hpp"
#include "framework/core/path.hpp"
#include "framework/data/coverage.hpp"
#include "framework/data/features.hpp"
#include "framework/io/safetensors.hpp"
#include "framework/metrics/evaluate.hpp"
#include "framework/metrics/metrics.hpp"

namespace quantrain::examples {
namespace {

constexpr std::array kClasses{
    "yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go", "unknown", "silence"};
constexpr int32_t kUnknown = 10;
constexpr int32_t kSilence = 11;
// Words of the class "unknown", as in Speech Commands.   Source: Warden 2018
constexpr std::array kOtherWords{
    "bed",   "bird", "cat",      "dog",     "happy",  "house", "marvin", "sheila", "tree",
    "wow",   "zero", "one",      "two",     "three",  "four",  "five",   "six",    "seven",
    "eight", "nine", "backward", "forward", "follow", "learn", "visual"};
constexpr int64_t kFrames = 49;
constexpr int64_t kCoefficients = 10;
// Frames of 30 ms, every 20 ms.
constexpr MelOptions kMel{
    .window = 480, .hop = 320, .bands = 40, .lowest = 20.0, .highest = 4000.0};

struct Features {
  std::vector<float> values;  // [N, 49, 10]
  std::vector<int32_t> labels;

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

/// The words that a voice says for a class. For "unknown", each take is a random word of
/// kOtherWords.
std::vector<Utterance> utterances(const std::string& voice, int32_t label, int64_t takes) {
  std::vector<Utterance> all;
  for (int64_t take = 0; take < takes; ++take) {
    Utterance said{.voice = voice, .word = kClasses[static_cast<size_t>(label)], .take = take};
    if (label == kUnknown) {
      const int64_t other = said.random(0, 0).below(static_cast<int64_t>(kOtherWords.size()));
      said.word = kOtherWords[static_cast<size_t>(other)];
    }
    all.push_back(std::move(said));
  }
  return all;
}

Features features_of(std::span<const std::string> voices, const SpeechFlags& flags, uint64_t seed) {
  const std::string folder = flags.words(seed);
  std::vector<Utterance> all;
  for (const std::string& voice : voices) {
    for (int32_t label = 0; label < kSilence; ++label) {
      const auto said = utterances(voice, label, flags.takes);
      all.insert(all.end(), said.begin(), said.end());
    }
  }
  speak(folder, all, seed);

  MelSpectrogram mel(kMel);
  Features features;
  for (const std::string& voice : voices) {
    for (int32_t label = 0; label <= kSilence; ++label) {
      for (const Utterance& said : utterances(voice, label, flags.takes)) {
        Sound sound;
        if (label != kSilence) sound = resample(read_wav(folder + '/' + said.file()), kMel.rate);
        for (int64_t copy = 1; copy <= flags.copies; ++copy) {
          const auto random = said.random(seed, static_cast<uint64_t>(copy));
          const auto decibels = mel.decibels(heard(sound, random));
          const auto row = cosine_transform(decibels, kMel.bands, kCoefficients);
          features.values.insert(features.values.end(), row.begin(), row.end());
          features.labels.push_back(label);
        }
      }
    }
  }
  return features;
}

struct Parts {
  Features training, test;
};

/// Every fourth voice belongs to the test set.
Parts make_parts(const SpeechFlags& flags, uint64_t seed) {
  const auto voices = human_voices().first(static_cast<size_t>(flags.voices));
  std::vector<std::string> training, test;
  for (size_t i = 0; i < voices.size(); ++i) (i % 4 == 3 ? test : training).push_back(voices[i]);
  return {features_of(training, flags, seed), features_of(test, flags, seed)};
}

void add(TensorFile& file, const std::string& name, const Features& features) {
  file.add<float>(name + ".values", {features.size(), kFrames, kCoefficients}, features.values);
  file.add<int32_t>(name + ".labels", {features.size()}, features.labels);
}

Features part(const TensorFile& file, const std::string& name) {
  return {file.values<float>(name + ".values"), file.values<int32_t>(name + ".labels")};
}

/// The features for these flags, read from the cache, or else computed and written to it.
Parts cached_parts(const SpeechFlags& flags, uint64_t seed) {
  const std::string path = flags.cache + "/features.safetensors";
  if (exists(path)) {
    const TensorFile file = load_safetensors(path);
    if (file.metadata_at("settings") == flags.settings(seed))
      return {part(file, "training"), part(file, "test")};
  }
  std::cout << "speaking the words into " << flags.words(seed) << '\n' << std::flush;
  make_folders(flags.cache);
  Parts parts = make_parts(flags, seed);
  TensorFile file;
  file.metadata["settings"] = flags.settings(seed);
  add(file, "training", parts.training);
  add(file, "test", parts.test);
  save_safetensors(path, file);
  return parts;
}

constexpr Range kRange{-5.0f, 5.0f};  // standard deviations

Dataset dataset(const Features& features, const InputFeatures& scales) {
  return Dataset::from_floats({features.size(), kFrames, kCoefficients},
                              features.values,
                              features.labels,
                              static_cast<int64_t>(kClasses.size()),
                              kRange,
                              scales,
                              Outside::kSaturate);
}

/// The same without codes.
TensorDataset float_dataset(const Features& features, const InputFeatures& scales) {
  return {SampleArray::floats({features.size(), kFrames, kCoefficients},
                              scaled(features.values, scales)),
          Labels{features.labels, static_cast<int64_t>(kClasses.size())}};
}

/// Prints the integer network's confusion matrix. Returns the metadata to save.
std::map<std::string, std::string> deploy(const IntegerModel& model, const Dataset& test) {
  std::string classes;
  for (const char* name : kClasses) classes += (classes.empty() ? "" : ", ") + std::string(name);
  ConfusionMatrix matrix(test.classes());
  matrix.add(predict(model, DataLoader(test, {.batch = kEvaluationBatch})), test.labels());
  std::cout << "classes are " << classes << '\n' << matrix;
  return {{"classes", classes}};
}

}  // namespace

Task spot_keywords(const Flags& flags, const SpeechFlags& speech) {
  const Parts parts = cached_parts(speech, flags.seed);
  // Coefficients differ by an order of magnitude, so each has its own offset and scale.
  const InputFeatures scales = fit_mean_std(parts.training.values, kCoefficients);
  std::cout << coverage(parts.training.values, kRange, scales);
  const Dataset training = dataset(parts.training, scales), test = dataset(parts.test, scales);
  Task task = make_classification("espeak-ng", training, test, flags.limit);
  task.float_inputs = make_float_inputs(float_dataset(parts.training, scales),
                                        float_dataset(parts.test, scales),
                                        flags.limit,
                                        task.score);
  task.settings = speech.settings(flags.seed);
  task.augment = in_order({random_time_shift(2), time_mask(4)});
  task.deploy = [test](const IntegerModel& model) { return deploy(model, test); };
  return task;
}

}  // namespace quantrain::examples
