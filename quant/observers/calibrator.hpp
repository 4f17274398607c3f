#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quant/observers/spec.hpp"

namespace quantrain::quant {

/// Holds one observer for each layer name. collect() shows an observer the values that a network
/// computes on some batches; finalize() turns the observers' ranges into parameters.
class Calibrator {
 public:
  /// collect() makes observers of this kind, along this axis.
  /// Throws: QuantError if the spec is invalid.
  explicit Calibrator(const ObserverSpec& spec = {}, int axis = -1);

  /// Shows x to the observer of this name. A new name gets an observer for x's number of channels.
  /// Throws: DataError or ShapeError like Observer::observe().
  void collect(const std::string& name, const Tensor& x);

  /// ranges(), samples() and observer() throw QuantError, with a list of the known names, if this
  /// name is unknown.
  std::vector<Range> ranges(std::string_view name, const QType& type, QScheme scheme) const;
  int64_t samples(std::string_view name) const;
  const Observer& observer(std::string_view name) const&;
  const Observer& observer(std::string_view name) const&& = delete;
  /// All names, in alphabetical order.
  std::vector<std::string> names() const;

  /// Parameters by name.   docs/quantization.md (2)
  /// Throws: QuantError if nothing was collected; otherwise like Observer::params().
  std::map<std::string, QParams> finalize(const QType& type, QScheme scheme) const;
  /// Forgets all names.
  void reset() { observers_.clear(); }

 private:
  ObserverSpec spec_;
  int axis_;
  std::map<std::string, std::unique_ptr<Observer>, std::less<>> observers_;
};

}  // namespace quantrain::quant
