// How a FakeQuantize finds its parameters: from what passes see, and within a Calibration.
#include <cmath>
#include <new>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/kernels/float/ranges.hpp"
#include "quant/prepare/fake_quantize.hpp"

namespace quantrain::quant {

void FakeQuantize::check_input(const Tensor& x) const {
  if (x.elements() == 0) throw DataError(place(type()), "cannot calibrate with an empty tensor");
  if (config_.axis >= 0 && (config_.axis >= x.rank() || x.dim(config_.axis) != config_.channels)) {
    throw ShapeError(place(type()),
                     "x ",
                     x.shape(),
                     ", expected ",
                     config_.channels,
                     " channels along axis ",
                     config_.axis);
  }
}

// Parameters from x alone. LSQ's scale starts at 2 mean|x| / sqrt(qmax). LSQ defines no zero
// point, so the zero point comes from the range of x.
QParams FakeQuantize::start(const Tensor& x) const {
  const DefaultRounding rounding;
  check_input(x);
  if (learned_ == nullptr || learned_->starts_from_observer()) {
    observer_->set_name(place(type()));
    return observer_->params_of(x, code_type(), config_.scheme);
  }
  QParams params = MinMaxObserver({}, {config_.axis, config_.channels, place(type())})
                       .params_of(x, code_type(), config_.scheme);
  const Floats values = x.floats();
  int64_t inner = 1;
  for (int axis = config_.axis + 1; config_.axis >= 0 && axis < x.rank(); ++axis)
    inner *= x.dim(axis);
  if (config_.axis < 0) inner = x.elements();
  std::vector<double> sums(params.scale.size(), 0.0);
  for (int64_t i = 0; i < x.elements(); ++i) {
    sums[static_cast<size_t>(i / inner % config_.channels)] +=
        std::abs(static_cast<double>(values.data()[i]));
  }
  const double share = static_cast<double>(x.elements()) / static_cast<double>(config_.channels);
  for (size_t c = 0; c < sums.size(); ++c) {
    const double start = 2.0 * sums[c] / share / std::sqrt(static_cast<double>(code_type().qmax()));
    if (start > static_cast<double>(kSmallestLearnedScale))
      params.scale[c] = static_cast<float>(start);
  }
  return params;
}

// Only the first tensor initializes a learned range.
void FakeQuantize::observe(const Tensor& x) {
  check_input(x);
  if (learned_ != nullptr) {
    if (!is_initialized() && !start_) start_ = start(x);
    return;
  }
  observer_->set_name(place(type()));
  if (x.kind() == ValueKind::kWaiting && config_.axis < 0 && !observer_->needs_values()) {
    const Range range = TensorAccess::waiting(x)->range(x.elements(), TensorAccess::activation(x));
    observer_->observe_range({&range, 1}, x.rank() == 0 ? 1 : x.dim(0));
  } else {
    observer_->observe(x);
  }
}

// What the observed values give; nothing if a learned range stays.
std::optional<FakeQuantize::Numbers> FakeQuantize::chosen() const {
  if (learned_ == nullptr) return Numbers(observer_->params(code_type(), config_.scheme));
  if (is_initialized() || !start_) return std::nullopt;
  return Numbers(*start_);
}

void FakeQuantize::move(const Tensor& x) {
  observe(x);
  choose();
}

void FakeQuantize::choose() {
  if (const std::optional<Numbers> numbers = chosen()) store(*numbers, kChosen);
  start_.reset();
}

void FakeQuantize::calibrate(const Tensor& x) {
  const DefaultRounding rounding;
  if (is_given())
    throw QuantError(place(type()),
                     "the parameters of this FakeQuantize were given, so it cannot be calibrated");
  if (phase() == Phase::kFrozen) {
    throw QuantError(
        place(type()),
        "FakeQuantize is frozen, and its range stays: set_phase(Phase::kTraining) "
        "lets it move, and a Calibration chooses it anew, unless its scale is learned");
  }
  const std::vector<NamedState> before = observed();
  try {
    move(x);
  } catch (...) {
    restore(before);
    start_.reset();
    throw;
  }
}

std::vector<NamedState> FakeQuantize::observed() const {
  std::vector<NamedState> copies;
  for (const NamedState& entry : observer_->state()) copies.push_back(entry.copy());
  return copies;
}

void FakeQuantize::restore(const std::vector<NamedState>& observed) {
  for (size_t i = 0; i < observed.size(); ++i) {
    const NamedState& own = observer_->state()[i];
    // Without the name, whose copy could find no memory.
    NamedState handle = own.holds_integers() ? NamedState(std::string(), own.integers)
                                             : NamedState(std::string(), own.tensor);
    handle.copy_values(observed[i]);
  }
}

void FakeQuantize::observe_calibration(const Tensor& x) {
  if (!before_) {
    before_ = observed();
    if (anew_) observer_->reset();
  }
  observe(x);
}

void FakeQuantize::choose_calibrated() {
  const DefaultRounding rounding;
  if (before_ && !is_given()) calibrated_ = chosen();
}

void FakeQuantize::end_calibration(bool complete) noexcept {
  if (before_ && complete && !is_given()) {
    try {
      if (!calibrated_) calibrated_ = chosen();
      if (calibrated_) store(*calibrated_, kChosen);
      why_no_params_.clear();
    } catch (const std::exception& error) {
      initialized_.fill(kNone);
      try {
        why_no_params_ = error.what();
      } catch (const std::bad_alloc&) {
        why_no_params_.clear();
      }
      complete = false;
    }
  }
  if (before_ && !complete) restore(*before_);
  before_.reset();
  calibrated_.reset();
  start_.reset();
}

}  // namespace quantrain::quant
