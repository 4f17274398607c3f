#include "quant/observers/observer.hpp"

#include <algorithm>
#include <cmath>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/elementwise.hpp"

namespace quantrain::quant {

std::string Observer::where() const {
  return name_.empty() ? std::string(kind()) + " observer" : name_;
}

void Observer::check_channels(size_t channels) const {
  if (!ranges_.empty() && channels != ranges_.size()) {
    throw ShapeError(where(),
                     kind(),
                     " observer: ",
                     channels,
                     " channels along axis ",
                     axis_,
                     ", but batches before had ",
                     ranges_.size());
  }
}

void Observer::check_finite(std::span<const Range> ranges, const char* what) const {
  for (size_t c = 0; c < ranges.size(); ++c) {
    if (!std::isfinite(ranges[c].min) || !std::isfinite(ranges[c].max)) {
      throw DataError(where(),
                      kind(),
                      " observer: ",
                      what,
                      " NaN or infinity: channel ",
                      c,
                      " has range [",
                      ranges[c].min,
                      ", ",
                      ranges[c].max,
                      "]");
    }
  }
}

void Observer::observe(const Tensor& x) {
  const Shape& shape = x.shape();
  if (x.elements() == 0) throw DataError(where(), kind(), " observer: empty batch ", shape);
  if (axis_ >= shape.rank()) {
    throw ShapeError(where(), kind(), " observer: no axis ", axis_, " in ", shape);
  }
  Batch batch{nullptr, x.elements(), axis_ < 0 ? 1 : shape[axis_], 1};
  if (axis_ < 0) batch.inner = batch.n;
  for (int i = axis_ + 1; axis_ >= 0 && i < shape.rank(); ++i) batch.inner *= shape[i];
  const auto channels = static_cast<size_t>(batch.channels);
  check_channels(channels);

  const Floats floats = x.floats();
  batch.x = floats.data();
  std::vector<float> min(channels);
  std::vector<float> max(channels);
  if (channels == 1) {
    kernels::min_max_f32(batch.n, batch.x, min.data(), max.data());
  } else {
    kernels::min_max_channels_f32(
        batch.n, batch.channels, batch.inner, batch.x, min.data(), max.data());
  }
  std::vector<Range> ranges(channels);
  for (size_t c = 0; c < channels; ++c) ranges[c] = {min[c], max[c]};
  check_finite(ranges, "the batch holds a");
  batch_ranges(batch, ranges);
  check_finite(ranges, "the batch's range overflows to");
  take(ranges, shape.rank() == 0 ? 1 : shape[0]);
}

void Observer::observe_range(std::span<const Range> extremes, int64_t samples) {
  if (needs_values()) {
    throw QuantError(where(), kind(), " observer: needs a batch's values, not only its extremes");
  }
  if (extremes.empty() || (axis_ < 0 && extremes.size() != 1)) {
    throw ShapeError(where(), kind(), " observer: ", extremes.size(), " ranges for axis ", axis_);
  }
  check_channels(extremes.size());
  check_finite(extremes, "the batch holds a");
  take(extremes, samples);
}

void Observer::take(std::span<const Range> batch, int64_t samples) {
  std::vector<Range> joined(batch.begin(), batch.end());
  for (size_t c = 0; c < ranges_.size(); ++c) joined[c] = join(ranges_[c], batch[c]);
  check_finite(joined, "the running range overflows to");
  ranges_ = std::move(joined);
  ++count_;
  samples_ += samples;
}

Range Observer::join(Range so_far, Range batch) const {
  return {std::min(so_far.min, batch.min), std::max(so_far.max, batch.max)};
}

const std::vector<Range>& Observer::ranges() const {
  if (ranges_.empty()) throw QuantError(where(), kind(), " observer: has seen no data");
  return ranges_;
}

Range Observer::range(size_t channel) const {
  if (channel >= ranges().size()) {
    throw QuantError(
        where(), kind(), " observer: no channel ", channel, ", it has ", ranges_.size());
  }
  return ranges_[channel];
}

QParams Observer::params(const QType& type, QScheme scheme) const {
  return choose_params(ranges(), axis_, type, scheme, where());
}

void Observer::reset() {
  ranges_.clear();
  count_ = 0;
  samples_ = 0;
}

Observer::State Observer::state() const {
  State state{Tensor::empty({static_cast<int64_t>(ranges_.size()), 2}), Tensor::empty({2})};
  float* y = state.ranges.mutable_data();
  for (const Range& range : ranges_) {
    *y++ = range.min;
    *y++ = range.max;
  }
  state.counts.mutable_data()[0] = static_cast<float>(count_);
  state.counts.mutable_data()[1] = static_cast<float>(samples_);
  return state;
}

void Observer::set_state(const State& state) {
  const Shape& shape = state.ranges.shape();
  if (shape.rank() != 2 || shape[1] != 2 || (axis_ < 0 && shape[0] > 1)) {
    throw ShapeError(where(), kind(), " observer: saved ranges of shape ", shape);
  }
  if (state.counts.shape() != Shape{2}) {
    throw ShapeError(where(), kind(), " observer: saved counts of shape ", state.counts.shape());
  }
  std::vector<Range> ranges;
  const Floats floats = state.ranges.floats();
  for (const float* x = floats.data(); x != floats.data() + 2 * shape[0]; x += 2) {
    ranges.push_back({x[0], x[1]});
    if (x[0] > x[1]) {
      throw DataError(where(), kind(), " observer: saved range [", x[0], ", ", x[1], "]");
    }
  }
  check_finite(ranges, "the saved state holds a");
  const Floats counts = state.counts.floats();
  for (int i = 0; i < 2; ++i) {
    if (!(counts[i] >= 0.0f && counts[i] <= 0x1p62f)) {
      throw DataError(where(), kind(), " observer: saved count ", counts[i]);
    }
  }
  ranges_ = std::move(ranges);
  count_ = static_cast<int64_t>(counts[0]);
  samples_ = static_cast<int64_t>(counts[1]);
}

}  // namespace quantrain::quant
