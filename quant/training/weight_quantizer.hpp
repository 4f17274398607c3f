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
/// weights of this very step, never an average, in every phase; learned scales stay in
/// Phase::kFrozen, given ones always.   docs/quantization.md (5), (15)
class WeightQuantizer : public WeightSlot, public PhasedSlot {
 public:
  /// own: the layer's weight [O, ...] and bias. Channels are counted in the weight, and a learned
  /// scale starts from it, as it is folded now.
  WeightQuantizer(const WeightConfig& config, const Weights& own, std::shared_ptr<Folding> folding);
  std::string_view type() const override { return "WeightQuantizer"; }

  /// The bias of the result is undefined while the batch norm after it uses batch statistics: it
  /// adds its own.
  Weights apply(const Weights& own, const Tensor& x) override;

  /// Gives the parameters of the weights, folded where a batch norm is: they stay while the weights
  /// train, and are saved with the state. For weights that were quantized elsewhere.
  /// Throws: QuantError if they are not valid, or are not of this type and number of channels.
  void set_params(const QParams& params);
  /// Those of the weights as they are now, folded where a batch norm is. A pass may raise a scale
  /// for the bias, by what the input's scale is.   docs/quantization.md (5)
  QParams params() const;
  bool is_given() const { return saved_integer(given_.data()[0], 0, 1, "given") == 1; }
  const WeightConfig& config() const& { return config_; }
  WeightConfig config() const&& { return config_; }
  const std::shared_ptr<Folding>& folding() const& { return folding_; }
  std::shared_ptr<Folding> folding() const&& { return folding_; }

 private:
  void start_scale(const Weights& own);
  QParams empty_params() const;
  QParams params_for(const Weights& weights, const Tensor& x) const;
  QParams given_params() const;

  WeightConfig config_;
  Weights own_;  // the layer's
  std::shared_ptr<Folding> folding_;
  Tensor scale_;       // [O] or [1]: learned, or given
  Tensor zero_point_;  // likewise: given
  Tensor given_;       // [1]: 0 or 1
};

}  // namespace quantrain::quant
