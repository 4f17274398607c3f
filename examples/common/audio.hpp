#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

// Turns sound into inputs of networks: spectrograms in bands of the mel scale, and their cosine
// transform.
namespace quantrain::examples {

/// One channel; samples in [-1, 1].
struct Sound {
  int64_t rate = 16000;  ///< samples in a second
  std::vector<float> samples;
};

/// Reads the first channel of a .wav of 16-bit integers.
/// Throws: DataError naming the path if the file is missing, truncated or not a valid RIFF/WAVE
/// file, or if its samples are not 16-bit integers.
/// Source: Microsoft, "Multimedia Programming Interface and Data Specifications 1.0", 1991
Sound read_wav(const std::string& path);
/// Writes a .wav. Samples are rounded, and clamped to 16 bits.
/// Throws: DataError if the file cannot be written.
void write_wav(const std::string& path, const Sound& sound);

/// The sound at another rate. The filter is a sinc under a Hann window. It reaches 16 samples to
/// each side, counted at the lower of the two rates.
/// Throws: DataError unless rates are positive.
Sound resample(const Sound& sound, int64_t rate);

/// w[i] = 0.5 - 0.5 cos(2 pi i / n): periodic, for spectrograms.
std::vector<float> hann_window(int64_t n);

/// 2595 log10(1 + f / 700), and the inverse.   Source: O'Shaughnessy 1987, "Speech Communication"
double mel_of(double hertz);
double hertz_of(double mel);

/// y[k] = |sum over i of x[i] exp(-2 pi j i k / n)|^2 for k = 0 .. n / 2, computed by kissfft.
class PowerSpectrum {
 public:
  /// Throws: DataError unless n is even and from 2 to 2^24.
  explicit PowerSpectrum(int64_t n);
  ~PowerSpectrum();
  PowerSpectrum(PowerSpectrum&&) noexcept;
  PowerSpectrum& operator=(PowerSpectrum&&) noexcept;

  int64_t bins() const;
  /// Shapes: x [at most n], followed by zeros  ->  [bins()].
  /// Throws: DataError if x has more than n samples.
  const std::vector<float>& operator()(std::span<const float> x);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct MelOptions {
  int64_t rate = 16000;
  int64_t window = 1024;  ///< samples of a frame, under a Hann window
  int64_t hop = 512;      ///< samples from one frame to the next
  int64_t bands = 128;
  double lowest = 0.0;      ///< where the first band begins, in hertz
  double highest = 8000.0;  ///< where the last band ends, in hertz
};

/// The energy of each frame in triangular bands. The bands have equal width in mels and overlap by
/// half.
class MelSpectrogram {
 public:
  /// Throws: DataError unless sizes are positive, window is at most 2^24, and 0 <= lowest < highest
  /// <= rate / 2.
  explicit MelSpectrogram(MelOptions options);

  const MelOptions& options() const& { return options_; }
  /// Number of whole frames in this many samples.
  int64_t frames(int64_t samples) const;
  /// 10 log10(energy + 1e-10), in decibels.
  /// Shapes: samples  ->  [frames, bands].
  /// Throws: DataError if the sound has another rate.
  std::vector<float> decibels(const Sound& sound);

 private:
  /// Weights of the bins [first, first + weights.size()).
  struct Band {
    int64_t first = 0;
    std::vector<float> weights;
  };

  MelOptions options_;
  std::vector<float> window_;
  PowerSpectrum spectrum_;
  std::vector<Band> bands_;
};

/// The first coefficients of the orthonormal cosine transform (DCT-II) of each row. If the rows are
/// decibels in mel bands, the results are mel-frequency cepstral coefficients (MFCC).
/// Shapes: rows [N, width]  ->  [N, count].
/// Throws: DataError unless the values form whole rows and 1 <= count <= width.
/// Source: Davis and Mermelstein 1980
std::vector<float> cosine_transform(std::span<const float> rows, int64_t width, int64_t count);

}  // namespace quantrain::examples
