#include "examples/data/speech.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/path.hpp"

extern char** environ;

namespace quantrain::examples {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "espeak-ng";
constexpr std::array kAccents{
    "en-us", "en-gb", "en-gb-scotland", "en-029", "en-gb-x-rp", "en-gb-x-gbclan", "en-gb-x-gbcwmd"};

bool installed() {
  const char* const path = std::getenv("PATH");
  const std::string folders = path == nullptr ? "/usr/bin" : path;
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    if (access((folders.substr(begin, end - begin) + '/' + kProgram).c_str(), X_OK) == 0)
      return true;
    begin = end + 1;
  }
  return false;
}

/// Runs espeak-ng and waits for it.
void run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kProgram);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  int status = posix_spawnp(&child, kProgram, nullptr, nullptr, argv.data(), environ);
  if (status != 0 || waitpid(child, &status, 0) != child || status != 0)
    throw DataError("speech", kProgram, " failed to speak \"", arguments.back(), '"');
}

void speak(const std::string& path, const Utterance& utterance, uint64_t seed) {
  Random random = utterance.random(seed, 0);
  const std::string accent =
      kAccents[static_cast<size_t>(random.below(static_cast<int64_t>(kAccents.size())))];
  const int64_t speed = 120 + random.below(101);  // words per minute
  const int64_t pitch = 25 + random.below(51);    // out of 100
  const std::string half = path + ".part";
  fs::create_directories(to_path(path).parent_path());
  run({"-v",
       accent + '+' + utterance.voice,
       "-s",
       std::to_string(speed),
       "-p",
       std::to_string(pitch),
       "-w",
       half,
       utterance.word});
  fs::rename(to_path(half), to_path(path));
}

/// The samples without the nearly silent parts at the beginning and end.
std::span<const float> spoken_part(std::span<const float> samples) {
  float loudest = 0.0f;
  for (const float sample : samples) loudest = std::max(loudest, std::abs(sample));
  const auto heard = [&](float sample) { return std::abs(sample) > 0.02f * loudest; };
  const auto first = std::find_if(samples.begin(), samples.end(), heard);
  const auto last = std::find_if(samples.rbegin(), samples.rend(), heard).base();
  return first < last ? std::span(first, last) : std::span<const float>();
}

}  // namespace

Random Utterance::random(uint64_t seed, uint64_t index) const {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : file()) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return Random(seed, hash, index);
}

std::span<const std::string> human_voices() {
  static const std::vector<std::string> voices{
      "m1",     "f1",       "m2",    "f2",       "m3",     "f3",      "m4",      "f4",
      "m5",     "f5",       "m6",    "Andrea",   "m7",     "anika",   "m8",      "Annie",
      "adam",   "belinda",  "Alex",  "linda",    "Andy",   "steph",   "antonio", "aunty",
      "caleb",  "benjamin", "boris", "david",    "Denis",  "Diogo",   "ed",      "edward",
      "Gene",   "grandma",  "Jacky", "Henrique", "Hugo",   "iven",    "grandpa", "john",
      "Lee",    "marcelo",  "Marco", "Mario",    "max",    "Michael", "miguel",  "Nguyen",
      "pablo",  "paul",     "pedro", "quincy",   "rob",    "robert",  "sandro",  "shelby",
      "travis", "victor",   "zac",   "norbert",  "klatt2", "klatt3",  "klatt4",  "kaukovalta"};
  return voices;
}

void speak(const std::string& folder, std::span<const Utterance> utterances, uint64_t seed) {
  if (!installed()) {
    throw DataError("speech",
                    "the program espeak-ng, which speaks the words, is not installed: on Debian, "
                    "apt-get install espeak-ng");
  }
  std::atomic<size_t> next = 0;
  std::mutex guard;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (size_t i = next++; i < utterances.size(); i = next++) {
        const std::string path = folder + '/' + utterances[i].file();
        if (!fs::exists(to_path(path))) speak(path, utterances[i], seed);
      }
    } catch (...) {
      const std::scoped_lock lock(guard);
      failure = std::current_exception();
      next = utterances.size();
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < quantrain::threads(); ++i) threads.emplace_back(work);
  threads.clear();
  if (failure) std::rethrow_exception(failure);
}

Sound heard(const Sound& said, Random random) {
  constexpr int64_t kSamples = 16000;
  Sound sound;
  sound.samples.resize(kSamples);
  const auto part = spoken_part(said.samples);
  const auto length = static_cast<int64_t>(part.size());
  double energy = 0.0;
  for (const float sample : part) energy += double{sample} * double{sample};
  const double loudness = std::pow(10.0, random.uniform(-1.7f, -0.7f));  // root mean square
  if (energy > 0.0) {
    const double gain = loudness / std::sqrt(energy / static_cast<double>(length));
    // Puts the word in the middle, shifted by up to a tenth of a second. A word that is too long
    // loses its ends.
    const int64_t begin = (kSamples - length) / 2 + random.below(3201) - 1600;
    for (int64_t i = std::max<int64_t>(0, -begin); i < std::min(length, kSamples - begin); ++i) {
      const double sample = gain * double{part[static_cast<size_t>(i)]};
      sound.samples[static_cast<size_t>(begin + i)] = static_cast<float>(sample);
    }
  }
  // The noise is 30 to 10 dB below the word. With colour 0 it is white.
  const double noise = loudness * std::pow(10.0, random.uniform(-1.5f, -0.5f));
  const double colour = random.uniform(0.0f, 0.95f);
  const double norm = std::sqrt(1.0 - colour * colour);
  double state = 0.0;
  for (float& sample : sound.samples) {
    state = colour * state + norm * double{random.normal()};
    sample = static_cast<float>(std::clamp(double{sample} + noise * state, -1.0, 1.0));
  }
  return sound;
}

}  // namespace quantrain::examples
