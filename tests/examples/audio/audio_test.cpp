#include "examples/common/audio.hpp"

#include <cmath>
#include <numbers>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::examples {
namespace {

using test::TemporaryFolder;

constexpr double kTurn = 2.0 * std::numbers::pi;

Sound sine(double hertz, int64_t samples, int64_t rate = 16000, double amplitude = 0.5) {
  Sound sound{.rate = rate, .samples = {}};
  for (int64_t i = 0; i < samples; ++i) {
    const double t = static_cast<double>(i) / static_cast<double>(rate);
    sound.samples.push_back(static_cast<float>(amplitude * std::sin(kTurn * hertz * t)));
  }
  return sound;
}

size_t loudest(const std::vector<float>& values) {
  return static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

}  // namespace

TEST_CASE("the spectrum keeps the energy of the samples", "[examples][audio]") {
  // Parseval: the sum of |X|^2 over all n bins is n times the sum of x^2. PowerSpectrum gives bins
  // 0 to n / 2. The other bins have the powers of bins 1 to n / 2 - 1, so these count twice.
  Random random(1);
  for (const int64_t n : {2, 6, 16, 480, 1024}) {
    std::vector<float> x;
    double energy = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      x.push_back(random.normal());
      energy += double{x.back()} * double{x.back()};
    }
    PowerSpectrum spectrum(n);
    CHECK(spectrum.bins() == n / 2 + 1);
    const std::vector<float> power = spectrum(x);
    double sum = 0.0;
    for (size_t k = 0; k < power.size(); ++k)
      sum += (k == 0 || k + 1 == power.size() ? 1.0 : 2.0) * double{power[k]};
    CHECK(sum == test::Approx(static_cast<double>(n) * energy).epsilon(1e-5));
  }
  QUANTRAIN_CHECK_ERROR(PowerSpectrum(7), DataError, "[spectrum] 7 samples");
  QUANTRAIN_CHECK_ERROR(PowerSpectrum(0), DataError, "[spectrum] 0 samples");
  PowerSpectrum four(4);
  QUANTRAIN_CHECK_ERROR(four(std::vector<float>(5)), DataError, "5 samples, expected at most 4");
}

TEST_CASE("all energy of a sine lies in its bin", "[examples][audio]") {
  PowerSpectrum spectrum(1024);
  const std::vector<float> power = spectrum(sine(1000.0, 1024).samples);  // bin 64, 15.625 Hz a bin
  CHECK(loudest(power) == 64);
  CHECK(power[64] == test::Approx(256.0 * 256.0).epsilon(1e-4));  // (amplitude * n / 2)^2
  CHECK(power[62] < 1e-4f);
}

TEST_CASE("mel_of matches known values, and hertz_of inverts it", "[examples][audio]") {
  CHECK(mel_of(0.0) == 0.0);
  CHECK(mel_of(700.0) == test::Approx(2595.0 * std::log10(2.0)));
  CHECK(mel_of(1000.0) == test::Approx(1000.0).epsilon(1e-4));
  for (const double hertz : {20.0, 440.0, 7999.0})
    CHECK(hertz_of(mel_of(hertz)) == test::Approx(hertz));
}

TEST_CASE("a sine is loudest in the mel band that it lies in", "[examples][audio]") {
  const MelOptions options{.window = 480, .hop = 320, .bands = 40, .lowest = 20, .highest = 4000};
  MelSpectrogram mel(options);
  CHECK(mel.frames(16000) == 49);
  CHECK(mel.frames(479) == 0);
  const double first = mel_of(options.lowest);
  const double width = (mel_of(options.highest) - first) / 41.0;
  for (const size_t band : {size_t{8}, size_t{20}, size_t{39}}) {
    const double middle = hertz_of(first + width * static_cast<double>(band + 1));
    const std::vector<float> rows = mel.decibels(sine(middle, 16000));
    REQUIRE(rows.size() == 49 * 40);
    for (size_t frame = 0; frame < 49; ++frame) {
      const std::vector<float> row(rows.begin() + static_cast<std::ptrdiff_t>(frame * 40),
                                   rows.begin() + static_cast<std::ptrdiff_t>(frame * 40 + 40));
      CHECK(loudest(row) == band);
    }
  }
}

TEST_CASE("ten times the amplitude is twenty decibels", "[examples][audio]") {
  MelSpectrogram mel(MelOptions{});
  const std::vector<float> soft = mel.decibels(sine(1000.0, 1024, 16000, 0.05));
  const std::vector<float> loud = mel.decibels(sine(1000.0, 1024, 16000, 0.5));
  const size_t band = loudest(loud);
  CHECK(loud[band] - soft[band] == test::Approx(20.0).epsilon(1e-3));
  CHECK(mel.decibels({.rate = 16000, .samples = std::vector<float>(1024)})[3] ==
        test::Approx(-100.0));
}

TEST_CASE("spectrograms refuse invalid options, and sounds of another rate", "[examples][audio]") {
  QUANTRAIN_CHECK_ERROR(MelSpectrogram({.window = 0}), DataError, "a window has 0 samples");
  QUANTRAIN_CHECK_ERROR(MelSpectrogram({.bands = 0}), DataError, "bands 0 must be positive");
  QUANTRAIN_CHECK_ERROR(MelSpectrogram({.highest = 9000.0}), DataError, "9000");
  QUANTRAIN_CHECK_ERROR(MelSpectrogram({.lowest = 8000.0}), DataError, "not in order");
  MelSpectrogram mel(MelOptions{});
  QUANTRAIN_CHECK_ERROR(
      mel.decibels(sine(100, 2048, 8000)), DataError, "the sound has 8000 Hz, expected 16000");
}

TEST_CASE("the cosine transform is orthonormal", "[examples][audio]") {
  const std::vector<float> rows{1, 1, 1, 1, 3, -1, 2, 5};
  const std::vector<float> y = cosine_transform(rows, 4, 4);
  CHECK(y[0] == test::Approx(2.0));
  for (size_t k = 1; k < 4; ++k) CHECK(std::abs(y[k]) < 1e-6f);
  const double energy = y[4] * y[4] + y[5] * y[5] + y[6] * y[6] + y[7] * y[7];
  CHECK(energy == test::Approx(9 + 1 + 4 + 25));
  CHECK(y[4] == test::Approx(4.5));
  CHECK(y[5] == test::Approx(std::sqrt(0.5) *
                             (3 * std::cos(kTurn / 16) - std::cos(3 * kTurn / 16) +
                              2 * std::cos(5 * kTurn / 16) + 5 * std::cos(7 * kTurn / 16))));
  CHECK(cosine_transform(rows, 4, 1) == std::vector<float>{y[0], y[4]});
  QUANTRAIN_CHECK_ERROR(cosine_transform(rows, 3, 1), DataError, "8 values in rows of 3");
  QUANTRAIN_CHECK_ERROR(cosine_transform(rows, 4, 5), DataError, "5 coefficients");
}

TEST_CASE("resampling keeps a tone, and removes a tone too high for the new rate",
          "[examples][audio]") {
  const Sound low = resample(sine(1000.0, 22050, 22050), 16000);
  CHECK(low.rate == 16000);
  CHECK(low.samples.size() == 16000);
  const Sound expected = sine(1000.0, 16000);
  for (size_t i = 100; i < 15900; ++i)
    REQUIRE(std::abs(low.samples[i] - expected.samples[i]) < 2e-3f);
  const Sound high = resample(sine(10000.0, 22050, 22050), 16000);
  for (size_t i = 100; i < 15900; ++i) REQUIRE(std::abs(high.samples[i]) < 2e-3f);
  QUANTRAIN_CHECK_ERROR(resample(low, 0), DataError, "16000 and 0");
}

TEST_CASE("reading a .wav returns the samples that were written", "[examples][audio]") {
  const TemporaryFolder folder;
  const Sound sound{.rate = 8000, .samples = {0.0f, 0.5f, -1.0f, 1.0f, 1.0f / 32768.0f}};
  write_wav(folder / "a.wav", sound);
  const Sound read = read_wav(folder / "a.wav");
  CHECK(read.rate == 8000);
  CHECK(read.samples ==
        std::vector<float>{0.0f, 0.5f, -1.0f, 32767.0f / 32768.0f, 1.0f / 32768.0f});
}

TEST_CASE("a truncated or unsupported .wav is refused with its path", "[examples][audio]") {
  const TemporaryFolder folder;
  write_wav(folder / "whole", {.rate = 8000, .samples = {0.25f, 0.5f, -0.5f}});
  const std::vector<uint8_t> whole = test::read_bytes(folder / "whole");
  REQUIRE(whole.size() == 50);
  for (size_t size = 0; size < whole.size(); ++size) {
    test::write_bytes(folder / "cut", std::span(whole).first(size));
    QUANTRAIN_CHECK_ERROR(read_wav(folder / "cut"), DataError, "/cut: ");
  }
  auto changed = [&](size_t at, uint8_t byte) {
    std::vector<uint8_t> bytes = whole;
    bytes[at] = byte;
    test::write_bytes(folder / "changed", bytes);
    return folder / "changed";
  };
  QUANTRAIN_CHECK_ERROR(read_wav(changed(0, 'X')), DataError, "not a RIFF/WAVE file");
  QUANTRAIN_CHECK_ERROR(read_wav(changed(20, 3)), DataError, "format 3 of 16 bits");
  QUANTRAIN_CHECK_ERROR(read_wav(changed(34, 24)), DataError, "format 1 of 24 bits");
  QUANTRAIN_CHECK_ERROR(read_wav(changed(22, 0)), DataError, "0 channels");
  QUANTRAIN_CHECK_ERROR(read_wav(changed(12, 'F')), DataError, "data come before their format");
  QUANTRAIN_CHECK_ERROR(
      read_wav(changed(16, 4)), DataError, "its fmt chunk has 4 bytes, expected at least 16");
  QUANTRAIN_CHECK_ERROR(read_wav(changed(43, 0xff)),
                        DataError,
                        "chunk \"data\" claims 4278190086 bytes, but 6 follow");
}

}  // namespace quantrain::examples
