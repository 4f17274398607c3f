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
  std::string voice;  ///< of espeak-ng, "m3"
  std::string word;
  int64_t take = 0;  ///< accent, pitch and speed are drawn for each

  /// "m3/yes-0.wav"
  std::string file() const { return voice + '/' + word + '-' + std::to_string(take) + ".wav"; }
  /// What is drawn for it: 0 how it is spoken, from 1 on how it is heard.
  Random random(uint64_t seed, uint64_t index) const;
};

/// Voices of espeak-ng that speak like people: no whisper, no robot.
std::span<const std::string> human_voices();

/// Has the program espeak-ng speak them into folder/file(), several at a time; those that are there
/// stay as they are.
/// Throws: DataError if there is no program espeak-ng, it fails, or a file cannot be written.
void speak(const std::string& folder, std::span<const Utterance> utterances, uint64_t seed);

/// One second at 16 kHz as a microphone hears it: what was said, or nothing where it has no
/// samples, somewhere in the middle, loud or soft, in noise of some loudness and colour.
Sound heard(const Sound& said, Random random);

}  // namespace quantrain::examples
