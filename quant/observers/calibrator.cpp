#include "quant/observers/calibrator.hpp"

#include <algorithm>

#include "framework/core/error.hpp"

namespace quantrain::quant {

Calibrator::Calibrator(const ObserverSpec& spec, int axis) : spec_(spec), axis_(axis) {
  make_observer(spec);  // throws if the spec is invalid
}

void Calibrator::collect(const std::string& name, const Tensor& x) {
  const auto known = observers_.find(name);
  if (known != observers_.end()) {
    known->second->observe(x);
    return;
  }
  // Without an axis (-1), there is one channel. If x lacks the axis, or the axis is empty,
  // observe() throws.
  const int64_t channels = axis_ >= 0 && axis_ < x.rank() ? std::max<int64_t>(x.dim(axis_), 1) : 1;
  auto observer = make_observer(spec_, {axis_, channels, name});
  observer->observe(x);
  observers_.emplace(name, std::move(observer));
}

const Observer& Calibrator::observer(std::string_view name) const& {
  const auto known = observers_.find(name);
  if (known != observers_.end()) return *known->second;
  std::string list;
  for (const auto& entry : observers_) list.append(list.empty() ? "" : ", ").append(entry.first);
  throw QuantError("calibrator",
                   "nothing was collected for \"",
                   name,
                   "\"; known: ",
                   list.empty() ? "none" : list);
}

std::vector<Range> Calibrator::ranges(std::string_view name,
                                      const QType& type,
                                      QScheme scheme) const {
  return observer(name).ranges(type, scheme);
}

int64_t Calibrator::samples(std::string_view name) const { return observer(name).samples(); }

std::vector<std::string> Calibrator::names() const {
  std::vector<std::string> names;
  for (const auto& entry : observers_) names.push_back(entry.first);
  return names;
}

std::map<std::string, QParams> Calibrator::finalize(const QType& type, QScheme scheme) const {
  if (observers_.empty()) throw QuantError("calibrator", "nothing was collected");
  std::map<std::string, QParams> params;
  for (const auto& [name, observer] : observers_) params[name] = observer->params(type, scheme);
  return params;
}

}  // namespace quantrain::quant
