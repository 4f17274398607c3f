#include "quant/prepare/fake_quantize.hpp"

#include <algorithm>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "layers/dry_run.hpp"
#include "quant/prepare/methods/power_of_two.hpp"

namespace quantrain::quant {
namespace {

FakeQuantizeConfig activations(int bits) { return {.type = {.bits = bits}}; }

FakeQuantizeConfig weights(int bits) {
  return {.type = {.bits = bits, .is_signed = true, .narrow = true},
          .scheme = QScheme::kSymmetric,
          .storage = CodeStorage::kS8,
          .observer = MinMaxOptions{}};
}

FakeQuantizeConfig config_of(const QParams& params, Estimator estimator) {
  validate(params, "FakeQuantize");
  return {.type = params.type,
          .axis = params.axis,
          .channels = static_cast<int64_t>(params.scale.size()),
          .estimator = estimator};
}

}  // namespace

FakeQuantizeConfig FakeQuantizeConfig::q8() { return activations(8); }
FakeQuantizeConfig FakeQuantizeConfig::q4() { return activations(4); }
FakeQuantizeConfig FakeQuantizeConfig::int8() { return weights(8); }
FakeQuantizeConfig FakeQuantizeConfig::int4() { return weights(4); }
FakeQuantizeConfig FakeQuantizeConfig::int2() { return weights(2); }

FakeQuantize::FakeQuantize(FakeQuantizeConfig config)
    : FakeQuantize(
          config, make_observer(config.observer, {config.axis, config.channels, "FakeQuantize"})) {}

FakeQuantize::FakeQuantize(FakeQuantizeConfig config, std::unique_ptr<Observer> observer)
    : Phased(config.simulation), config_(std::move(config)), observer_(std::move(observer)) {
  if (observer_ == nullptr) throw QuantError("FakeQuantize", "the observer is null");
  if (observer_->axis() != config_.axis || observer_->channels() != config_.channels) {
    throw QuantError("FakeQuantize",
                     config_.channels,
                     " channels along axis ",
                     config_.axis,
                     ", but its observer has ",
                     observer_->channels(),
                     " along axis ",
                     observer_->axis());
  }
  validate(config_.type, "FakeQuantize");
  if (const std::string wrong = FewerBits::fault(config_.first_bits, config_.type.bits);
      !wrong.empty())
    throw QuantError("FakeQuantize", wrong);
  if (config_.range) {
    if (config_.axis >= 0)
      throw QuantError("FakeQuantize",
                       "a known range is for all channels, so the axis must be -1, got ",
                       config_.axis);
    known_ = choose_params({&*config_.range, 1}, -1, config_.type, config_.scheme, "FakeQuantize");
    const ScaleZero known = finished({known_->scale[0], known_->zero_point[0]});
    known_->scale = {known.scale};
    known_->zero_point = {known.zero_point};
    if (is_learned(config_.estimator)) config_.estimator = Estimator::kClamped;
  }
  learned_ = learned_range(config_.estimator);
  if (learned_ != nullptr) {
    const std::string wrong = learned_->fault(config_.type, config_.scheme);
    if (!wrong.empty()) throw QuantError("FakeQuantize", wrong);
  }
  for (NamedState& entry : type_constants(config_.type, learned_ != nullptr))
    add_buffer(std::move(entry));
  if (config_.power_of_two) add_buffer(power_of_two_constant());
  if (known_) {
    add_buffer("phase", saved_phase());
    return;
  }
  if (config_.first_bits != 0) bits_.emplace(config_.first_bits, config_.type.bits);
  const Shape per_channel{config_.channels};
  if (learned_ == nullptr) values_.push_back(add_buffer("scale", Tensor::full(per_channel, 1.0f)));
  for (const char* name : learned_ == nullptr ? std::vector<const char*>() : learned_->names())
    values_.push_back(add_parameter(name, Tensor::full(per_channel, 1.0f)));
  zero_point_ = add_buffer("zero_point", zero_points(config_.channels, code_type()));
  if (bits_) add_buffer("current_bits", bits_->state());
  initialized_ = add_buffer("initialized", IntegerBuffer({1}, {.least = kNone, .most = kGiven}));
  add_buffer("phase", saved_phase());
  for (NamedState entry : observer_->state()) {
    entry.name = "observer." + entry.name;
    add_buffer(std::move(entry));
  }
}

FakeQuantize::FakeQuantize(const QParams& params, Estimator estimator)
    : FakeQuantize(config_of(params, estimator)) {
  update_params(params);
}

QParams FakeQuantize::params() const {
  if (known_) return *known_;
  if (!is_initialized()) {
    throw QuantError(
        place(type()),
        "FakeQuantize has no parameters: ",
        !why_no_params_.empty() ? why_no_params_
        : is_saved_frozen()
            ? "it is frozen and was not calibrated: call quant::calibrate(net, batches) first"
            : "it was not calibrated: call quant::calibrate(net, batches), or train in training "
              "mode, first");
  }
  QParams params{code_type(), config_.axis, {}, {}};
  for (size_t c = 0; c < static_cast<size_t>(config_.channels); ++c) {
    const ScaleZero numbers = channel(c);
    params.scale.push_back(numbers.scale);
    params.zero_point.push_back(numbers.zero_point);
  }
  return params;
}

ScaleZero FakeQuantize::stored(size_t c) const {
  const auto zero_point = static_cast<int32_t>(zero_point_.values()[c]);
  const float first = values_[0].data()[c];
  if (learned_ == nullptr) return {first, zero_point};
  if (is_given()) return {learned_scale(first), zero_point};
  return learned_->params_of(values_of(c), zero_point, code_type());
}

ScaleZero FakeQuantize::channel(size_t c) const {
  return is_given() ? stored(c) : finished(stored(c));
}

ScaleZero FakeQuantize::finished(const ScaleZero& chosen) const {
  return config_.power_of_two ? with_power_of_two(chosen, code_type(), config_.scheme) : chosen;
}

LearnedRange::Values FakeQuantize::values_of(size_t c) const {
  LearnedRange::Values values{};
  for (size_t i = 0; i < values_.size(); ++i) values[i] = values_[i].data()[c];
  return values;
}

void FakeQuantize::project() {
  for (size_t c = 0; c < static_cast<size_t>(config_.channels); ++c) {
    const LearnedRange::Values projected = learned_->projected(values_of(c), code_type());
    for (size_t i = 0; i < values_.size(); ++i) {
      if (projected[i] != values_[i].data()[c]) values_[i].mutable_data()[c] = projected[i];
    }
  }
}

Learning FakeQuantize::learning(const QParams& params) const {
  Learning all{.ends_at_codes = learned_->ends_at_codes()};
  for (size_t i = 0; i < values_.size(); ++i) {
    LearnedParameter parameter{.value = values_[i], .normalized = learned_->normalized()};
    for (size_t c = 0; c < params.scale.size(); ++c) {
      const ScaleZero numbers{params.scale[c], params.zero_point[c]};
      parameter.slopes.push_back(learned_->slope(i, numbers, params.type));
      parameter.units.push_back(learned_->unit(i, numbers, params.type));
    }
    all.parameters.push_back(std::move(parameter));
  }
  return all;
}

void FakeQuantize::lower_bits(int64_t by) { prepared_lower_bits(by)(); }

std::function<void()> FakeQuantize::prepared_lower_bits(int64_t by) {
  const DefaultRounding rounding;
  if (!lowers_bits()) return [] {};
  const int bits = bits_->lowered(by, is_saved_frozen(), place(type()));
  const QType before = code_type();
  if (bits == before.bits) return [] {};
  if (!is_initialized()) return [this, bits] { bits_->set(bits); };
  const QType now{bits, before.is_signed, before.narrow};
  // From the stored scales: a power of two would be rounded up again with every bit.
  QParams old{before, config_.axis, {}, {}};
  std::vector<Range> ranges;
  for (size_t c = 0; c < static_cast<size_t>(config_.channels); ++c) {
    const ScaleZero numbers = stored(c);
    old.scale.push_back(numbers.scale);
    old.zero_point.push_back(numbers.zero_point);
    ranges.push_back(old.float_range(c));
  }
  QParams after = choose_params(ranges, config_.axis, now, config_.scheme, place(type()));
  const bool keeps_range = learned_ == nullptr || learned_->ends_at_codes();
  for (size_t c = 0; c < after.scale.size() && !keeps_range; ++c) {
    const double scale = static_cast<double>(old.scale[c]) * learned_scale_factor(before, now);
    after.scale[c] = static_cast<float>(scale);
  }
  return [this, bits, numbers = Numbers(after)] {
    const DefaultRounding in_call;
    bits_->set(bits);
    store(numbers, kChosen);
  };
}

// Allocates nothing, except if the zero points are out of range.
void FakeQuantize::store(const Numbers& numbers, Origin origin) {
  zero_point_.set(numbers.zero_point);
  for (size_t c = 0; c < numbers.scale.size(); ++c) {
    LearnedRange::Values values{numbers.scale[c]};
    if (learned_ != nullptr && origin != kGiven) {
      values = learned_->values_of({numbers.scale[c], static_cast<int32_t>(numbers.zero_point[c])},
                                   code_type());
    }
    for (size_t i = 0; i < values_.size(); ++i) values_[i].mutable_data()[c] = values[i];
  }
  initialized_.fill(origin);
}

void FakeQuantize::update_params(const QParams& params) {
  if (known_) {
    throw QuantError(place(type()),
                     "the parameters follow from the range [",
                     config_.range->min,
                     ", ",
                     config_.range->max,
                     "] of the operation's results, and cannot be set");
  }
  check_given(params, code_type(), config_.axis, config_.channels, place(type()));
  store(Numbers(params), kGiven);
}

FakeQuantizeOptions FakeQuantize::options_for(const Tensor& x) const {
  const bool batch = config_.storage == CodeStorage::kU8 && config_.axis != 0 && x.rank() > 0;
  return {.storage = config_.storage,
          .clamped = config_.estimator != Estimator::kPlain,
          .codes = simulation() == Simulation::kInteger,
          .samples = batch ? x.dim(0) : 1};
}

bool FakeQuantize::moves() const {
  return phase() == Phase::kTraining && training() && !is_given() && !DryRun::on();
}

bool FakeQuantize::takes_range() const {
  return !in_float() && !DryRun::on() && (moves() || is_initialized()) &&
         simulation() == Simulation::kInteger && config_.estimator == Estimator::kClamped &&
         config_.storage == CodeStorage::kU8 && config_.axis < 0 && code_type().bits <= 8 &&
         !observer_->needs_values();
}

QParams FakeQuantize::params_for(const Range& range, int64_t samples) {
  const DefaultRounding rounding;
  if (moves()) {
    observer_->set_name(layer().empty() ? place(type()) : layer());
    observer_->observe_range({&range, 1}, samples);
    choose();
  }
  return params();
}

Tensor FakeQuantize::forward(const Tensor& x) {
  if (in_float()) {
    if (phase() == Phase::kCalibrating && !is_given() && !DryRun::on()) observe_calibration(x);
    return x;
  }
  if (moves()) move(x);
  if (DryRun::on() && !is_initialized()) return fake_quantize(x, start(x), options_for(x));
  const bool learns = learned_ != nullptr && phase() == Phase::kTraining && !is_given();
  if (learns && moves()) project();
  const QParams current = params();
  return learns ? fake_quantize_learned(x, learning(current), current, options_for(x))
                : fake_quantize(x, current, options_for(x));
}

std::vector<NamedState> FakeQuantize::pass_state() const {
  std::vector<NamedState> entries = Module::pass_state();
  entries.insert(entries.end(), own_parameters().begin(), own_parameters().end());
  return entries;
}

void FakeQuantize::join_shards(const ShardStates& shards) {
  const DefaultRounding rounding;
  const std::vector<NamedState> own = pass_state();
  const auto index_of = [&](std::string_view name) {
    const auto found = std::find_if(
        own.begin(), own.end(), [&](const NamedState& entry) { return entry.name == name; });
    return static_cast<size_t>(found - own.begin());
  };
  const bool learned = !own_parameters().empty();
  if (is_given() || (learned && is_initialized())) {
    Module::join_shards(shards);
    return;
  }
  if (learned) {
    const size_t initialized = index_of("initialized");
    for (const std::vector<NamedState>& after : shards.after) {
      if (after[initialized].integers.item() == kNone) continue;
      for (size_t i = 0; i < own.size(); ++i) NamedState(own[i]).copy_values(after[i]);
      return;
    }
    return;
  }
  const size_t first = index_of("observer.counts");
  std::vector<std::vector<NamedState>> observed;
  for (const std::vector<NamedState>& after : shards.after) {
    const auto begin = after.begin() + static_cast<std::ptrdiff_t>(first);
    observed.emplace_back(begin, begin + std::ssize(observer_->state()));
  }
  observer_->set_name(place(type()));
  observer_->join_shards(observed);
  if (observer_->count() > 0) choose();
}

double FakeQuantize::quantization_noise(const Tensor& x) const {
  const DefaultRounding rounding;
  const NoGrad no_grad;
  const Tensor y = fake_quantize(x.detach(), params(), options_for(x));
  const Floats a = x.floats();
  const Floats b = y.floats();
  double sum = 0.0;
  for (int64_t i = 0; i < x.elements(); ++i) {
    const double difference = static_cast<double>(b[i]) - static_cast<double>(a[i]);
    sum += difference * difference;
  }
  return x.elements() == 0 ? 0.0 : computed(sum / static_cast<double>(x.elements()));
}

}  // namespace quantrain::quant
