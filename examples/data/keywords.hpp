#pragma once

#include <cstdint>
#include <string>

#include "examples/common/flags.hpp"
#include "examples/common/task.hpp"

namespace quantrain::examples {

/// The words of keyword_spotting.
struct SpeechFlags {
  std::string cache = "keyword_spotting_data";  ///< folder for the words and their features
  int64_t voices = 64;                          ///< every fourth is for the test
  int64_t takes = 3;                            ///< how often a voice says each word
  int64_t copies = 4;                           ///< samples of each take, each with its own noise

  /// The folder of the spoken words.
  std::string words(uint64_t seed) const { return cache + "/words-" + std::to_string(seed); }
  std::string settings(uint64_t seed) const {
    return "--voices " + std::to_string(voices) + " --takes " + std::to_string(takes) +
           " --copies " + std::to_string(copies) + " --seed " + std::to_string(seed);
  }
};

/// Ten words, other words and silence, from cepstral coefficients [N, 49, 10] of one second of
/// sound. espeak-ng speaks the words. The test uses voices that do not occur in training. The task
/// prints how many codes the coefficients use and, when the network is deployed, its confusion
/// matrix.
/// Throws: as speak(); DataError if the cache is damaged or cannot be written, or there are fewer
/// training samples than flags.limit.
Task spot_keywords(const Flags& flags, const SpeechFlags& speech);

}  // namespace quantrain::examples
