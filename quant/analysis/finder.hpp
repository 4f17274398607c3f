#pragma once

#include <string>
#include <utility>
#include <vector>

#include "quant/analysis/diagnosis.hpp"

namespace quantrain::quant {

/// Looks for what is wrong in a diagnosis: at each layer's values (findings.cpp), and at what
/// becomes of the outputs (findings_outputs.cpp).
class Finder {
 public:
  explicit Finder(const Diagnosis& diagnosis) : diagnosis_(diagnosis) {}
  /// The findings, the worst first.
  std::vector<Finding> run();

 private:
  void add(FindingKind kind,
           const LayerDiagnosis& layer,
           double measure,
           double bits_lost,
           std::string cause,
           std::string advice);
  bool has_finding(const LayerDiagnosis& layer) const;
  void look_at_input(const LayerDiagnosis& layer);
  /// Rare values that saturated when they were encoded, whose rows the network misses in float,
  /// too.
  bool look_at_clipped(const LayerDiagnosis& layer);
  bool look_at_cut_off(const LayerDiagnosis& layer, const std::string& advice);
  void look_at_range(const LayerDiagnosis& layer);
  void look_at_operands(const LayerDiagnosis& layer);
  void add_stuck(const LayerDiagnosis& layer,
                 const std::string& what,
                 double ratio,
                 const std::string& setting);
  void look_at_weights(const LayerDiagnosis& layer, const WeightsDiagnosis& weights);
  void look_at_channels(const LayerDiagnosis& layer);

  void look_at_bits();
  void look_at_outputs();
  /// The layer whose values reach farthest beyond its codes, and how many times their range; null
  /// if there is none.
  std::pair<const LayerDiagnosis*, double> most_cut_off() const;
  const LayerDiagnosis& noisiest() const;
  // What the other findings do not explain.
  void look_at_targets();

  const Diagnosis& diagnosis_;
  std::vector<Finding> found_;
};

// Parts of advice.
std::string range_text(const Range& range);            ///< "[0, 1]"
std::string braced(const Range& range);                ///< "{0f, 1f}"
std::string settings_of(const LayerDiagnosis& layer);  ///< "config.layers[\"0\"]"

}  // namespace quantrain::quant
