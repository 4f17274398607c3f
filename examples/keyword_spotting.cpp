// Recognizes ten spoken words with DS-CNN, from cepstral coefficients of one second of sound.
// espeak-ng speaks the words. The test uses voices that do not occur in training.
#include <array>
#include <iostream>

#include "examples/common/audio.hpp"
#include "examples/common/program.hpp"
#include "examples/data/speech.hpp"
#include "examples/tiny_networks.hpp"
#include "framework/core/error.hpp"
#include "framework/core/path.hpp"
#include "framework/data/coverage.hpp"
#include "framework/data/features.hpp"
#include "framework/io/safetensors.hpp"
#include "framework/metrics/evaluate.hpp"
#include "framework/metrics/metrics.hpp"

using namespace quantrain;

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
constexpr examples::MelOptions kMel{
    .window = 480, .hop = 320, .bands = 40, .lowest = 20.0, .highest = 4000.0};

struct SpeechFlags {
  std::string cache = "keyword_spotting_data";
  int64_t voices = 64;
  int64_t takes = 3;   // how often a voice says each word
  int64_t copies = 4;  // samples made from each take, each with its own noise

  /// The folder of the spoken words.
  std::string words(uint64_t seed) const { return cache + "/words-" + std::to_string(seed); }
  std::string settings(uint64_t seed) const {
    return "--voices " + std::to_string(voices) + " --takes " + std::to_string(takes) +
           " --copies " + std::to_string(copies) + " --seed " + std::to_string(seed);
  }
};

struct Features {
  std::vector<float> values;  // [N, 49, 10]
  std::vector<int32_t> labels;

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

/// The words that a voice says for a class. For "unknown", each take is a random word of
/// kOtherWords.
std::vector<examples::Utterance> utterances(const std::string& voice,
                                            int32_t label,
                                            int64_t takes) {
  std::vector<examples::Utterance> all;
  for (int64_t take = 0; take < takes; ++take) {
    examples::Utterance said{
        .voice = voice, .word = kClasses[static_cast<size_t>(label)], .take = take};
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
  std::vector<examples::Utterance> all;
  for (const std::string& voice : voices) {
    for (int32_t label = 0; label < kSilence; ++label) {
      const auto said = utterances(voice, label, flags.takes);
      all.insert(all.end(), said.begin(), said.end());
    }
  }
  examples::speak(folder, all, seed);

  examples::MelSpectrogram mel(kMel);
  Features features;
  for (const std::string& voice : voices) {
    for (int32_t label = 0; label <= kSilence; ++label) {
      for (const examples::Utterance& said : utterances(voice, label, flags.takes)) {
        examples::Sound sound;
        if (label != kSilence)
          sound = examples::resample(examples::read_wav(folder + '/' + said.file()), kMel.rate);
        for (int64_t copy = 1; copy <= flags.copies; ++copy) {
          const auto random = said.random(seed, static_cast<uint64_t>(copy));
          const auto decibels = mel.decibels(examples::heard(sound, random));
          const auto row = examples::cosine_transform(decibels, kMel.bands, kCoefficients);
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
  const auto voices = examples::human_voices().first(static_cast<size_t>(flags.voices));
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
  matrix.add(predict(model, DataLoader(test, {.batch = examples::kEvaluationBatch})),
             test.labels());
  std::cout << "classes are " << classes << '\n' << matrix;
  return {{"classes", classes}};
}

examples::Task make_task(const examples::Flags& flags, const SpeechFlags& speech) {
  const Parts parts = cached_parts(speech, flags.seed);
  // Coefficients differ by an order of magnitude, so each has its own offset and scale.
  const InputFeatures scales = fit_mean_std(parts.training.values, kCoefficients);
  std::cout << coverage(parts.training.values, kRange, scales);
  const Dataset training = dataset(parts.training, scales), test = dataset(parts.test, scales);
  examples::Task task = examples::make_classification("espeak-ng", training, test, flags.limit);
  task.float_inputs = examples::make_float_inputs(float_dataset(parts.training, scales),
                                                  float_dataset(parts.test, scales),
                                                  flags.limit,
                                                  task.score);
  task.settings = speech.settings(flags.seed);
  task.augment = in_order({random_time_shift(2), time_mask(4)});
  task.deploy = [test](const IntegerModel& model) { return deploy(model, test); };
  return task;
}

}  // namespace

int main(int argc, char** argv) {
  SpeechFlags speech;
  const std::vector<examples::ProgramFlag> own_flags = {
      {"--cache", "folder for the words and their features", &speech.cache},
      {"--voices",
       "number of voices; every fourth is for the test",
       &speech.voices,
       4,
       static_cast<int64_t>(examples::human_voices().size())},
      {"--takes", "number of times that a voice says each word", &speech.takes, 1, 1000},
      {"--copies", "number of copies of a take, each with its own noise", &speech.copies, 1, 1000}};
  return examples::run(
      argc,
      argv,
      {.name = "keyword_spotting",
       .line = {.description = "Trains DS-CNN on words that espeak-ng speaks, and converts the "
                               "network to integers.",
                .data = {},
                .defaults = {.epochs = 20,
                             .qat_epochs = 3,
                             .learning_rate = 2e-3f,
                             .qat_learning_rate = 2e-4f},
                .flags = own_flags},
       .task = [&](const examples::Flags& flags) { return make_task(flags, speech); },
       .network = [](const examples::Task&) { return examples::ds_cnn(); }});
}
