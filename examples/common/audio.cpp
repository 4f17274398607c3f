#include "examples/common/audio.hpp"

#include <kiss_fftr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <string_view>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"

namespace quantrain::examples {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr size_t kRiffHeader = 12;
constexpr size_t kChunkHeader = 8;
constexpr size_t kFormatBytes = 16;

size_t to_size(int64_t n) { return static_cast<size_t>(n); }

std::vector<uint8_t> read_bytes(const std::string& path) {
  InputFile file(path);
  std::vector<uint8_t> bytes(to_size(file.left()));
  bytes.resize(file.read(bytes));
  return bytes;
}

uint32_t little_endian(std::span<const uint8_t> bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

void append_little_endian(std::string& text, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
}

std::string_view name_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), 4};
}

double sinc(double x) { return x == 0.0 ? 1.0 : std::sin(kPi * x) / (kPi * x); }

int64_t transform_size(int64_t window) {
  if (window < 1) throw DataError("mel", "a window has ", window, " samples, at least 1 is needed");
  return std::max<int64_t>(2, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(window))));
}

}  // namespace

Sound read_wav(const std::string& path) {
  const std::vector<uint8_t> bytes = read_bytes(path);
  const std::span<const uint8_t> all(bytes);
  if (all.size() < kRiffHeader || name_of(all) != "RIFF" || name_of(all.subspan(8)) != "WAVE")
    throw DataError("wav", path, ": not a RIFF/WAVE file");
  Sound sound;
  size_t channels = 0;
  size_t at = kRiffHeader;
  while (all.size() - at >= kChunkHeader) {
    const std::string_view name = name_of(all.subspan(at));
    const size_t size = little_endian(all.subspan(at + 4, 4));
    at += kChunkHeader;
    if (size > all.size() - at) {
      throw DataError("wav",
                      path,
                      ": chunk \"",
                      name,
                      "\" claims ",
                      size,
                      " bytes, but ",
                      all.size() - at,
                      " follow");
    }
    const auto chunk = all.subspan(at, size);
    if (name == "fmt ") {
      if (size < kFormatBytes)
        throw DataError(
            "wav", path, ": its fmt chunk has ", size, " bytes, expected at least ", kFormatBytes);
      const uint32_t format = little_endian(chunk.subspan(0, 2));
      const uint32_t bits = little_endian(chunk.subspan(14, 2));
      channels = little_endian(chunk.subspan(2, 2));
      sound.rate = little_endian(chunk.subspan(4, 4));
      if (format != 1 || bits != 16 || channels == 0 || sound.rate == 0) {
        throw DataError(
            "wav",
            path,
            ": format ",
            format,
            " of ",
            bits,
            " bits, ",
            channels,
            " channels at ",
            sound.rate,
            " Hz; expected format 1 of 16 bits, at least one channel, and a positive rate");
      }
    } else if (name == "data") {
      if (channels == 0) throw DataError("wav", path, ": data come before their format");
      for (size_t i = 0; i + 2 * channels <= size; i += 2 * channels) {
        const auto code = static_cast<int16_t>(little_endian(chunk.subspan(i, 2)));
        sound.samples.push_back(static_cast<float>(code) / 32768.0f);
      }
      return sound;
    }
    at = std::min(all.size(), at + size + size % 2);
  }
  throw DataError("wav", path, ": no samples in it");
}

void write_wav(const std::string& path, const Sound& sound) {
  const auto rate = static_cast<uint32_t>(sound.rate);
  const auto bytes = static_cast<uint32_t>(2 * sound.samples.size());
  std::string text = "RIFF";
  append_little_endian(text, 36 + bytes, 4);
  text += "WAVEfmt ";
  append_little_endian(text, kFormatBytes, 4);
  append_little_endian(text, 1, 2);  // format: integers
  append_little_endian(text, 1, 2);  // channels
  append_little_endian(text, rate, 4);
  append_little_endian(text, 2 * rate, 4);
  append_little_endian(text, 2, 2);
  append_little_endian(text, 16, 2);
  text += "data";
  append_little_endian(text, bytes, 4);
  for (const float sample : sound.samples) {
    const long code = std::lround(std::clamp(32768.0f * sample, -32768.0f, 32767.0f));
    append_little_endian(text, static_cast<uint32_t>(code), 2);
  }
  write_file(path, text);
}

Sound resample(const Sound& sound, int64_t rate) {
  if (sound.rate < 1 || rate < 1)
    throw DataError("resample", "rates are ", sound.rate, " and ", rate, ", both must be positive");
  if (sound.rate == rate) return sound;
  constexpr double kSide = 16.0;
  const double step = static_cast<double>(sound.rate) / static_cast<double>(rate);
  const double cut = std::min(1.0, 1.0 / step);  // the lower rate divided by the sound's rate
  const double side = kSide / cut;
  const auto samples = static_cast<int64_t>(sound.samples.size());
  Sound result{.rate = rate, .samples = {}};
  for (int64_t i = 0;; ++i) {
    const double at = static_cast<double>(i) * step;
    if (at > static_cast<double>(samples - 1)) break;
    const int64_t begin = std::max<int64_t>(0, static_cast<int64_t>(std::ceil(at - side)));
    const int64_t end = std::min(samples, static_cast<int64_t>(std::floor(at + side)) + 1);
    double sum = 0.0;
    for (int64_t tap = begin; tap < end; ++tap) {
      const double x = static_cast<double>(tap) - at;
      sum += double{sound.samples[to_size(tap)]} * cut * sinc(cut * x) *
             (0.5 + 0.5 * std::cos(kPi * x / side));
    }
    result.samples.push_back(static_cast<float>(sum));
  }
  return result;
}

std::vector<float> hann_window(int64_t n) {
  std::vector<float> window;
  for (int64_t i = 0; i < n; ++i) {
    const double turn = static_cast<double>(i) / static_cast<double>(n);
    window.push_back(static_cast<float>(0.5 - 0.5 * std::cos(2.0 * kPi * turn)));
  }
  return window;
}

double mel_of(double hertz) { return 2595.0 * std::log10(1.0 + hertz / 700.0); }
double hertz_of(double mel) { return 700.0 * (std::pow(10.0, mel / 2595.0) - 1.0); }

struct PowerSpectrum::State {
  struct Free {
    void operator()(kiss_fftr_cfg owned) const { kiss_fftr_free(owned); }
  };
  std::unique_ptr<kiss_fftr_state, Free> plan;
  std::vector<float> x;
  std::vector<kiss_fft_cpx> transformed;
  std::vector<float> power;
};

PowerSpectrum::PowerSpectrum(int64_t n) : state_(std::make_unique<State>()) {
  constexpr int64_t kMost = 1 << 24;
  if (n < 2 || n % 2 != 0 || n > kMost)
    throw DataError("spectrum", n, " samples: their number must be even, and from 2 to ", kMost);
  state_->plan.reset(kiss_fftr_alloc(static_cast<int>(n), 0, nullptr, nullptr));
  state_->x.resize(to_size(n));
  state_->transformed.resize(to_size(n / 2 + 1));
  state_->power.resize(to_size(n / 2 + 1));
}
PowerSpectrum::~PowerSpectrum() = default;
PowerSpectrum::PowerSpectrum(PowerSpectrum&&) noexcept = default;
PowerSpectrum& PowerSpectrum::operator=(PowerSpectrum&&) noexcept = default;

int64_t PowerSpectrum::bins() const { return static_cast<int64_t>(state_->power.size()); }

const std::vector<float>& PowerSpectrum::operator()(std::span<const float> x) {
  State& state = *state_;
  if (x.size() > state.x.size())
    throw DataError("spectrum", x.size(), " samples, expected at most ", state.x.size());
  std::fill(std::copy(x.begin(), x.end(), state.x.begin()), state.x.end(), 0.0f);
  kiss_fftr(state.plan.get(), state.x.data(), state.transformed.data());
  for (size_t k = 0; k < state.power.size(); ++k) {
    const kiss_fft_cpx& y = state.transformed[k];
    state.power[k] = y.r * y.r + y.i * y.i;
  }
  return state.power;
}

MelSpectrogram::MelSpectrogram(MelOptions options)
    : options_(options),
      window_(hann_window(options.window)),
      spectrum_(transform_size(options.window)) {
  const double nyquist = 0.5 * static_cast<double>(options.rate);
  if (options.rate < 1 || options.hop < 1 || options.bands < 1)
    throw DataError("mel",
                    "rate ",
                    options.rate,
                    ", hop ",
                    options.hop,
                    " and bands ",
                    options.bands,
                    " must be positive");
  if (!(options.lowest >= 0.0 && options.lowest < options.highest && options.highest <= nyquist))
    throw DataError("mel",
                    "bands from ",
                    options.lowest,
                    " to ",
                    options.highest,
                    " Hz are not in order, or not in 0 to ",
                    nyquist);
  const double first = mel_of(options.lowest);
  const double width = (mel_of(options.highest) - first) / static_cast<double>(options.bands + 1);
  const double bin = nyquist / static_cast<double>(spectrum_.bins() - 1);
  for (int64_t i = 0; i < options.bands; ++i) {
    const double left = first + width * static_cast<double>(i);
    Band band;
    for (int64_t k = 0; k < spectrum_.bins(); ++k) {
      // The band's triangle begins at 0, peaks at 1 and ends at 2.
      const double place = (mel_of(bin * static_cast<double>(k)) - left) / width;
      const double weight = 1.0 - std::abs(place - 1.0);
      if (weight <= 0.0) continue;
      if (band.weights.empty()) band.first = k;
      band.weights.push_back(static_cast<float>(weight));
    }
    bands_.push_back(std::move(band));
  }
}

int64_t MelSpectrogram::frames(int64_t samples) const {
  return samples < options_.window ? 0 : (samples - options_.window) / options_.hop + 1;
}

std::vector<float> MelSpectrogram::decibels(const Sound& sound) {
  if (sound.rate != options_.rate)
    throw DataError("mel", "the sound has ", sound.rate, " Hz, expected ", options_.rate);
  constexpr float kFloor = 1e-10f;
  std::vector<float> frame(window_.size());
  std::vector<float> rows;
  const int64_t count = frames(static_cast<int64_t>(sound.samples.size()));
  for (int64_t i = 0; i < count; ++i) {
    const float* const x = sound.samples.data() + i * options_.hop;
    for (size_t k = 0; k < frame.size(); ++k) frame[k] = window_[k] * x[k];
    const std::vector<float>& power = spectrum_(frame);
    for (const Band& band : bands_) {
      float energy = 0.0f;
      for (size_t k = 0; k < band.weights.size(); ++k)
        energy += band.weights[k] * power[to_size(band.first) + k];
      rows.push_back(10.0f * std::log10(energy + kFloor));
    }
  }
  return rows;
}

std::vector<float> cosine_transform(std::span<const float> rows, int64_t width, int64_t count) {
  if (width < 1 || rows.size() % to_size(width) != 0 || count < 1 || count > width) {
    throw DataError("cosine transform",
                    rows.size(),
                    " values in rows of ",
                    width,
                    ": cannot compute ",
                    count,
                    " coefficients of each row; expected whole rows, and 1 to ",
                    width,
                    " coefficients");
  }
  const auto n = static_cast<double>(width);
  std::vector<float> table;  // [count, width]
  for (int64_t k = 0; k < count; ++k) {
    const double norm = std::sqrt((k == 0 ? 1.0 : 2.0) / n);
    for (int64_t i = 0; i < width; ++i) {
      const double angle = kPi / n * (static_cast<double>(i) + 0.5) * static_cast<double>(k);
      table.push_back(static_cast<float>(norm * std::cos(angle)));
    }
  }
  std::vector<float> y;
  for (size_t row = 0; row < rows.size(); row += to_size(width)) {
    for (int64_t k = 0; k < count; ++k) {
      double sum = 0.0;
      for (int64_t i = 0; i < width; ++i)
        sum += double{rows[row + to_size(i)]} * double{table[to_size(k * width + i)]};
      y.push_back(static_cast<float>(sum));
    }
  }
  return y;
}

}  // namespace quantrain::examples
