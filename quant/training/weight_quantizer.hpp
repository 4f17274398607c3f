#pragma once

#include <memory>

#include "quant/training/batch_norm_folding.hpp"
#include "quant/training/fake_quantize.hpp"

namespace quantrain::quant {

/// How the weights of a layer are quantized.
struct WeightConfig {
  int bits = 8;
  bool narrow = true;
  bool per_channel = true;
  QScheme scheme = QScheme::kSymmetric;  ///< affine exists in simulation only
  Estimator estimator = Estimator::kClamped;

  friend bool operator==(const WeightConfig&, const WeightConfig&) = default;
};

/// Weight slot: folds a batch norm where there is one, then fake-quantizes with scales from the
/// weights of this very step, never an average.   docs/quantization.md (5), (15)
class WeightQuantizer : public WeightSlot {
 public:
  /// own: the layer's weight [O, ...] and bias. Channels are counted in the weight, and a learned
  /// scale starts from it, as it is folded now.
  WeightQuantizer(const WeightConfig& config, const Weights& own, std::shared_ptr<Folding> folding);
  std::string_view type() const override { return "WeightQuantizer"; }

  /// The bias of the result is undefined while the batch norm behind uses batch statistics: it adds
  /// its own.
  Weights apply(const Weights& own, const Tensor& x) override;

  void enable_fake_quantize(bool on) { fake_quantize_on_ = on; }
  bool fake_quantize_enabled() const { return fake_quantize_on_; }
  void set_simulation(Simulation simulation) { simulation_ = simulation; }
  Simulation simulation() const { return simulation_; }
  const WeightConfig& config() const { return config_; }
  const std::shared_ptr<Folding>& folding() const { return folding_; }

 private:
  QParams params_for(const Weights& weights, const Tensor& x) const;

  WeightConfig config_;
  std::shared_ptr<Folding> folding_;
  bool fake_quantize_on_ = true;
  Simulation simulation_ = Simulation::kInteger;
  Tensor scale_;  // [O] or [1]; defined if learned
};

}  // namespace quantrain::quant
