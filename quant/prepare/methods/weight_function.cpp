#include "quant/prepare/methods/weight_function.hpp"

#include "quant/observers/kinds.hpp"

namespace quantrain::quant {

std::string_view kind(const WeightFunction& function) { return kind_of(function); }

std::vector<WeightFunction> weight_functions() { return kinds_of(WeightFunction{}); }

WeightFunction weight_function(std::string_view name) {
  return spec_of<WeightFunction>(name, "weight function");
}

Tensor apply(const WeightFunction& function, const Tensor& w, bool per_channel) {
  return std::visit([&](const auto& f) { return f(w, per_channel); }, function);
}

std::string fault(const WeightFunction& function, const QType& type, bool per_channel) {
  return std::visit([&](const auto& f) { return f.fault(type, per_channel); }, function);
}

}  // namespace quantrain::quant
