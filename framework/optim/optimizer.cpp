#include "framework/optim/optimizer.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "framework/autograd/profile.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/rounding.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/kernels/float/grain.hpp"
#include "framework/kernels/float/ranges.hpp"

namespace quantrain {
namespace {

/// `parameter 4 "4.weight"`, or `parameter 4` if the tensor has no name.
std::string label(const char* what, size_t i, const Tensor& tensor) {
  TextStream text;
  text << what << ' ' << i;
  if (tensor.defined() && !tensor.name().empty()) text << " \"" << tensor.name() << '"';
  return text.str();
}

}  // namespace

void check_leaves(const std::string& where, const char* what, const std::vector<Tensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    const auto fail = [&](const char* fault) {
      throw DataError(where, label(what, i, tensor), fault);
    };
    if (!tensor.defined()) fail(" is undefined");
    if (tensor.kind() != ValueKind::kFloat) fail(" does not hold floats");
    if (tensor.node() != nullptr) fail(" is the result of an operation");
    const auto here = tensors.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(tensors.begin(), here, [&](const Tensor& t) { return t.same_as(tensor); }))
      fail(" is listed twice");
  }
}

Optimizer::Optimizer(std::string name,
                     std::vector<Tensor> parameters,
                     float learning_rate,
                     bool allow_nonfinite,
                     float largest_gradient)
    : name_(std::move(name)),
      parameters_(std::move(parameters)),
      learning_rate_(learning_rate),
      allow_nonfinite_(allow_nonfinite),
      largest_gradient_(largest_gradient) {
  if (parameters_.empty()) {
    throw DataError(
        name_,
        "there are no parameters: pass net.parameters(); a module's parameters are those of the "
        "layers that its constructor registers by add(name, layer), not those of plain members");
  }
  check_leaves(name_, "parameter", parameters_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].requires_grad())
      throw DataError(name_, label("parameter", i, parameters_[i]), " does not require a gradient");
    companions_.push_back(TensorAccess::companions(parameters_[i]));
  }
  if (!(learning_rate > 0.0f && std::isfinite(learning_rate))) {
    throw DataError(
        name_, "learning rate is ", learning_rate, ", expected a finite number above 0");
  }
}

void Optimizer::check_option(const char* option, float value, float low, float high) const {
  if (!(value >= low && value < high)) {
    throw DataError(
        name_, option, " is ", value, ", expected at least ", low, " and less than ", high);
  }
}

Tensor Optimizer::add_state(size_t i, const char* what, const Shape& shape, float least) {
  Tensor tensor = Tensor::zeros(shape);
  state_.push_back({{std::to_string(i) + '.' + what, tensor}, i, least, tensor.version()});
  return tensor;
}

IntegerBuffer Optimizer::add_count(size_t i, const char* what) {
  IntegerBuffer count({1}, {.least = 0, .most = kMostCount});
  state_.push_back({{std::to_string(i) + '.' + what, count}, i});
  return count;
}

void Optimizer::check_loaded(State& state) const {
  if (state.entry.holds_integers()) return;  // load_parameters() checks them
  const std::string& name = state.entry.name;
  const Tensor& tensor = state.entry.tensor;
  if (tensor.version() == state.version) return;
  const Floats values = tensor.floats();
  for (int64_t k = 0; k < tensor.elements(); ++k) {
    if (!(values[k] >= state.least && std::isfinite(values[k]))) {
      throw DataError(name_,
                      "state \"",
                      name,
                      "\" holds ",
                      values[k],
                      " at ",
                      k,
                      ", expected a finite number of at least ",
                      state.least);
    }
  }
  state.version = tensor.version();
}

std::string Optimizer::describe(size_t i) const {
  TextStream text;
  text << label("parameter", i, parameters_[i]) << ' ' << parameters_[i].shape();
  return text.str();
}

// Refuses parameters that have a gradient but were added after the optimizer was made, because they
// would never be trained. The optimizer may lack parameters that existed before: the caller may
// have left them out on purpose.
void Optimizer::check_complete() const {
  TensorAccess::Companions checked;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const TensorAccess::Companions& now = TensorAccess::companions(parameters_[i]);
    if (now == companions_[i] || now == checked) continue;
    checked = now;
    TextStream lacking;
    for (const NamedState& entry : *now) {
      const auto same = [&](const Tensor& own) { return own.same_as(entry.tensor); };
      if (!entry.tensor.grad().defined()) continue;
      if (std::any_of(parameters_.begin(), parameters_.end(), same)) continue;
      lacking << (lacking.tellp() == 0 ? "" : ", ") << '"' << entry.name << '"';
    }
    if (lacking.tellp() == 0) continue;
    throw DataError(name_,
                    "was made before these parameters, which have gradients: ",
                    lacking.str(),
                    "; make the optimizer from net.parameters() after prepare_qat");
  }
}

void Optimizer::Parts::add(int64_t n, Part part) {
  if (n <= 0) return;
  entries_.push_back({size_, n, std::move(part)});
  // So each part's blocks start with a whole vector.
  size_ += (n + 15) / 16 * 16;
}

void Optimizer::Parts::run(int64_t grain) {
  const std::vector<Entry> entries = std::exchange(entries_, {});
  parallel_for(std::exchange(size_, 0), grain, [&](int64_t begin, int64_t end) {
    auto entry =
        std::upper_bound(entries.begin(), entries.end(), begin, [](int64_t at, const Entry& e) {
          return at < e.first;
        });
    for (--entry; entry != entries.end() && entry->first < end; ++entry) {
      const int64_t from = std::max<int64_t>(begin - entry->first, 0);
      const int64_t to = std::min(end - entry->first, entry->n);
      if (from < to) entry->part(from, to);
    }
  });
}

void Optimizer::update_later(int64_t n, Part part) { later_.add(n, std::move(part)); }

// This check reads the gradients once. That is cheap: the update makes about seven passes over
// arrays of the same size.
bool Optimizer::gradients_fit() const {
  std::atomic<bool> fit = true;
  Parts parts;
  for (const Tensor& parameter : parameters_) {
    const Tensor grad = parameter.grad();
    if (!grad.defined()) continue;
    parts.add(grad.elements(), [this, &fit, values = grad.floats()](int64_t begin, int64_t end) {
      float min = 0.0f;
      float max = 0.0f;
      kernels::min_max_f32(end - begin, values + begin, &min, &max);
      if (!(std::abs(min) <= largest_gradient_ && std::abs(max) <= largest_gradient_))
        fit.store(false, std::memory_order_relaxed);
    });
  }
  parts.run(kernels::kGrain);
  return fit;
}

void Optimizer::check_gradient(size_t i) const {
  const Floats values = parameters_[i].grad().floats();
  const auto fits = [&](float g) { return std::abs(g) <= largest_gradient_; };
  int64_t first = 0;
  while (first < values.size() && fits(values[first])) ++first;
  if (first == values.size()) return;
  const bool finite = std::isfinite(values[first]);
  throw DataError(
      name_,
      "the gradient of ",
      describe(i),
      " is ",
      values[first],
      " at ",
      first,
      finite ? ", and its square is infinite" : "",
      ", so no parameter was updated: the learning rate may be too large, or ",
      finite ? "the gradients need clip_grad_norm()" : "the data may contain NaN or infinity",
      "; to step anyway, set the option allow_nonfinite");
}

void Optimizer::keep_in_domain(size_t i) {
  const TensorAccess::Least& least = TensorAccess::least(parameters_[i]);
  if (least == nullptr || static_cast<int64_t>(least->size()) != parameters_[i].elements()) return;
  float* const values = parameters_[i].mutable_data();
  for (size_t k = 0; k < least->size(); ++k) values[k] = std::max(values[k], (*least)[k]);
}

void Optimizer::step() {
  const DefaultRounding rounding;
  const auto trained = [&](size_t i) { return parameters_[i].grad().defined(); };
  check_complete();
  bool any = false;
  for (size_t i = 0; i < parameters_.size(); ++i) any = any || trained(i);
  if (!allow_nonfinite_ && !gradients_fit()) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (trained(i)) check_gradient(i);
    }
  }
  if (!any && !has_stepped_) {
    throw DataError(name_,
                    "no parameter has a gradient: call backward() on a loss that depends on the "
                    "parameters, before step()");
  }
  for (State& state : state_) {
    if (trained(state.parameter)) check_loaded(state);
  }
  try {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (!trained(i)) continue;
      update(i, parameters_[i], parameters_[i].grad());
    }
  } catch (...) {
    later_ = {};
    throw;
  }
  has_stepped_ = true;
  later_.run(kernels::kStepGrain);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (trained(i)) keep_in_domain(i);
  }
  for (State& state : state_) {
    if (trained(state.parameter) && !state.entry.holds_integers())
      state.version = state.entry.tensor.version();
  }
  Profile::mark(name_);
}

void Optimizer::zero_grad() {
  for (Tensor& parameter : parameters_) parameter.zero_grad();
}

void Optimizer::set_learning_rate(float learning_rate) {
  if (!(learning_rate >= 0.0f && std::isfinite(learning_rate))) {
    throw DataError(
        name_, "learning rate is ", learning_rate, ", expected 0 or a finite number above 0");
  }
  learning_rate_ = learning_rate;
}

std::vector<NamedState> Optimizer::state() const {
  std::vector<NamedState> entries;
  for (const State& state : state_) entries.push_back(state.entry);
  return entries;
}

}  // namespace quantrain
