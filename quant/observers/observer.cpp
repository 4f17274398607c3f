#include "quant/observers/observer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/kernels/float/ranges.hpp"

namespace quantrain::quant {
namespace {

// Saves the state, and restores it at the end of the scope.
class Untouched {
 public:
  explicit Untouched(std::vector<NamedState> state) : state_(std::move(state)) {
    for (const NamedState& entry : state_) values_.push_back(entry.copy());
  }
  ~Untouched() {
    for (size_t i = 0; i < state_.size(); ++i) state_[i].copy_values(values_[i]);
  }
  Untouched(const Untouched&) = delete;
  Untouched& operator=(const Untouched&) = delete;

 private:
  std::vector<NamedState> state_;
  std::vector<NamedState> values_;
};

}  // namespace

Observer::Observer(ObserverShape shape) : shape_(std::move(shape)) {
  if (shape_.channels < 1 || (shape_.axis < 0 && shape_.channels != 1)) {
    throw QuantError(shape_.name.empty() ? "observer" : shape_.name,
                     "axis ",
                     shape_.axis,
                     " with ",
                     shape_.channels,
                     " channels: expected 1 channel with axis -1, which means no axis, or at least "
                     "1 along an axis");
  }
  counts_ = add_counts("counts", {2});
}

std::string Observer::where() const {
  return name().empty() ? std::string(kind()) + " observer" : name();
}

void Observer::add(NamedState entry) {
  for (const NamedState& known : state_) {
    if (known.name == entry.name)
      throw QuantError("observer", "two states are named \"", entry.name, "\"");
  }
  state_.push_back(std::move(entry));
}

Tensor Observer::add_state(std::string name, const Shape& shape) {
  Tensor tensor = Tensor::zeros(shape);
  add({std::move(name), tensor});
  return tensor;
}

IntegerBuffer Observer::add_counts(std::string name, const Shape& shape) {
  IntegerBuffer counts(shape, {.least = 0, .most = kMostCount});
  add({std::move(name), counts});
  return counts;
}

void Observer::check_channels(int64_t channels) const {
  if (channels != shape_.channels) {
    throw ShapeError(where(),
                     kind(),
                     " observer: ",
                     channels,
                     " channels along axis ",
                     axis(),
                     ", expected ",
                     shape_.channels);
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
  const DefaultRounding rounding;
  const Shape& shape = x.shape();
  if (x.elements() == 0) throw DataError(where(), kind(), " observer: empty batch ", shape);
  if (axis() >= shape.rank()) {
    throw ShapeError(where(), kind(), " observer: no axis ", axis(), " in ", shape);
  }
  Batch batch{nullptr, x.elements(), axis() < 0 ? 1 : shape[axis()], 1};
  if (axis() < 0) batch.inner = batch.n;
  for (int i = axis() + 1; axis() >= 0 && i < shape.rank(); ++i) batch.inner *= shape[i];
  check_channels(batch.channels);

  const Floats floats = x.floats();
  batch.x = floats.data();
  const auto channels = static_cast<size_t>(batch.channels);
  std::vector<float> min(channels);
  std::vector<float> max(channels);
  if (channels == 1) {
    kernels::min_max_f32(batch.n, batch.x, min.data(), max.data());
  } else {
    kernels::min_max_channels_f32(
        batch.n, batch.channels, batch.inner, batch.x, min.data(), max.data());
  }
  std::vector<Range> extremes(channels);
  for (size_t c = 0; c < channels; ++c) extremes[c] = {min[c], max[c]};
  take(batch, extremes, shape.rank() == 0 ? 1 : shape[0]);
}

void Observer::observe_range(std::span<const Range> extremes, int64_t samples) {
  if (needs_values()) {
    throw QuantError(where(), kind(), " observer: needs a batch's values, not only its extremes");
  }
  check_channels(static_cast<int64_t>(extremes.size()));
  take({nullptr, 0, shape_.channels, 0}, extremes, samples);
}

void Observer::take(const Batch& batch, std::span<const Range> extremes, int64_t samples) {
  const DefaultRounding rounding;
  check_finite(extremes, "the batch holds a");
  const int64_t batches = count();
  const int64_t before = this->samples();
  if (samples < 0 || samples > kMostCount - before || batches == kMostCount) {
    throw DataError(
        where(), kind(), " observer: cannot count ", samples, " samples after ", before);
  }
  if (batches == 0) {
    reset();
  } else {
    check_state();
  }
  accumulate(batch, extremes);
  counts_.set(std::array{batches + 1, before + samples});
}

void Observer::join_shard(const std::vector<NamedState>& /*before*/,
                          const std::vector<NamedState>& /*other*/) {
  throw QuantError(
      where(),
      kind(),
      " observer: cannot join what the shards of a batch saw: override join_shard(), or "
      "train without shards");
}

void Observer::join_shards(const std::vector<std::vector<NamedState>>& after) {
  const DefaultRounding rounding;
  std::vector<NamedState> before;
  for (const NamedState& entry : state_) before.push_back(entry.copy());
  const auto set = [&](const std::vector<NamedState>& values) {
    for (size_t i = 0; i < state_.size(); ++i) state_[i].copy_values(values[i]);
  };
  const auto counts_of = [](const std::vector<NamedState>& values) {
    return std::array{values[0].integers.values()[0], values[0].integers.values()[1]};
  };
  const auto [batches, samples] = counts_of(before);
  std::array seen{batches, samples};
  try {
    bool first = true;
    for (const std::vector<NamedState>& shard : after) {
      const auto [shard_batches, shard_samples] = counts_of(shard);
      if (shard_batches == batches) continue;  // the layer did not run
      seen = {std::max(seen[0], shard_batches), seen[1] + shard_samples - samples};
      if (first) {
        set(shard);
        check_state();
      } else {
        join_shard(before, shard);
      }
      counts_.set(seen);
      first = false;
    }
  } catch (...) {
    set(before);
    throw;
  }
}

std::vector<Range> Observer::ranges(const QType& type, QScheme scheme) const {
  const DefaultRounding rounding;
  validate(type, where());
  if (count() == 0) throw QuantError(where(), kind(), " observer: has seen no data");
  check_state();
  std::vector<Range> ranges = choose_ranges(type, scheme);
  if (static_cast<int64_t>(ranges.size()) != channels()) {
    throw QuantError(where(),
                     kind(),
                     " observer: chose ",
                     ranges.size(),
                     " ranges for ",
                     channels(),
                     " channels");
  }
  return ranges;
}

QParams Observer::params(const QType& type, QScheme scheme) const {
  return choose_params(ranges(type, scheme), axis(), type, scheme, where());
}

QParams Observer::params_of(const Tensor& x, const QType& type, QScheme scheme) {
  const Untouched untouched(state_);
  reset();
  observe(x);
  return params(type, scheme);
}

void Observer::cover(Tensor& ranges, const Tensor& others) {
  float* const own = ranges.mutable_data();
  const float* const other = others.data();
  for (int64_t i = 0; i < ranges.elements(); i += 2) {
    own[i] = std::min(own[i], other[i]);
    own[i + 1] = std::max(own[i + 1], other[i + 1]);
  }
}

void Observer::reset() {
  for (NamedState& entry : state_) {
    if (entry.holds_integers()) {
      entry.integers.fill(0);
    } else {
      std::fill_n(entry.tensor.mutable_data(), entry.tensor.elements(), 0.0f);
    }
  }
}

}  // namespace quantrain::quant
