#include "quant/observers/observer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/kernels/float/ranges.hpp"
#include "quant/observers/exact_count.hpp"

namespace quantrain::quant {
namespace {

// Saves the state, and restores it at the end of the scope.
class Untouched {
 public:
  explicit Untouched(const std::vector<NamedTensor>& state) : state_(state) {
    for (const NamedTensor& entry : state) {
      const float* const x = entry.tensor.data();
      values_.emplace_back(x, x + entry.tensor.elements());
    }
  }
  ~Untouched() {
    for (size_t i = 0; i < state_.size(); ++i) {
      Tensor tensor = state_[i].tensor;
      std::copy(values_[i].begin(), values_[i].end(), tensor.mutable_data());
    }
  }
  Untouched(const Untouched&) = delete;
  Untouched& operator=(const Untouched&) = delete;

 private:
  const std::vector<NamedTensor>& state_;
  std::vector<std::vector<float>> values_;
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
  counts_ = add_state("counts", {2, 2});
}

std::string Observer::where() const {
  return name().empty() ? std::string(kind()) + " observer" : name();
}

Tensor Observer::add_state(std::string name, const Shape& shape) {
  for (const NamedTensor& entry : state_) {
    if (entry.name == name) throw QuantError("observer", "two states are named \"", name, "\"");
  }
  state_.push_back({std::move(name), Tensor::zeros(shape)});
  return state_.back().tensor;
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
  if (samples < 0 || samples >= kCountLimit - before) {
    throw DataError(
        where(), kind(), " observer: cannot count ", samples, " samples after ", before);
  }
  if (batches == 0) {
    reset();
  } else {
    check_state();
  }
  accumulate(batch, extremes);
  set_count(counts_.mutable_data(), batches + 1);
  set_count(counts_.mutable_data() + 2, before + samples);
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

int64_t Observer::count() const {
  const float* const counts = counts_.data();
  if (!is_count(counts) || !is_count(counts + 2)) {
    throw DataError(where(),
                    kind(),
                    " observer: state \"counts\" holds invalid counts: batches {",
                    counts[0],
                    ", ",
                    counts[1],
                    "}, samples {",
                    counts[2],
                    ", ",
                    counts[3],
                    "}");
  }
  return get_count(counts);
}

int64_t Observer::samples() const {
  count();  // throws if the state holds no valid counts
  return get_count(counts_.data() + 2);
}

void Observer::reset() {
  for (NamedTensor& entry : state_)
    std::fill_n(entry.tensor.mutable_data(), entry.tensor.elements(), 0.0f);
}

}  // namespace quantrain::quant
