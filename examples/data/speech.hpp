#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "examples/common/audio.hpp"
#include "framework/core/random.hpp"

namespace quantrain::examples {

/// One word, as one voice says it.
struct Utterance {
  std::string voice;  ///< a voice of espeak-ng, such as "m3"
  std::string word;
  int64_t take = 0;  ///< each take has its own random accent, pitch and speed

  /// "m3/yes-0.wav"
  std::string file() const { return voice + '/' + word + '-' + std::to_string(take) + ".wav"; }
  /// The utterance's random numbers. Index 0 is for how it is spoken, indices from 1 on are for how
  /// it is heard.
  Random random(uint64_t seed, uint64_t index) const;
};

/// Voices of espeak-ng that sound like people, without whispers and robots.
std::span<const std::string> human_voices();

/// Runs the program espeak-ng, which writes each utterance to the file folder/file(). Several
/// processes run at a time. Existing files are kept.
/// Throws: DataError if espeak-ng is not installed or fails; std::filesystem::filesystem_error if a
/// folder cannot be made or a file cannot be renamed.
void speak(const std::string& folder, std::span<const Utterance> utterances, uint64_t seed);

/// One second at 16 kHz as a microphone hears it. `said` is near the middle, at a random loudness,
/// in noise of random loudness and colour. If `said` has no samples, there is only noise.
Sound heard(const Sound& said, Random random);

}  // namespace quantrain::examples
