#pragma once

#include <memory>
#include <string>

#include "framework/autograd/ops/batch_norm.hpp"
#include "layers/batch_norm.hpp"
#include "layers/module.hpp"

namespace quantrain::quant {

/// A batch norm of a prepared network. If a product (a convolution or linear layer) precedes it,
/// two slots share this struct. The product's weight slot multiplies the weights by a factor, and
/// says so by the Rescaling of its result. While batch statistics are used, the batch norm's body
/// slot undoes this: it divides by the factor. If no product precedes the batch norm, only its body
/// slot holds the struct. A pass does not change the struct.   docs/quantization.md (15)
struct Folding {
  std::string path;                               ///< of the batch norm, for messages
  std::string product;                            ///< path of the product; empty if there is none
  Tensor gamma, beta, running_mean, running_var;  ///< [C], those of the batch norm
  float epsilon = 1e-5f;
  float momentum = 0.1f;
  bool training = true;  ///< mode of the batch norm; the product may be in another mode
  /// [1]; 1: training no longer uses batch statistics
  IntegerBuffer frozen{{1}, {.least = 0, .most = 1}};

  Folding(std::string layer_path, const BatchNorm& layer);
  void freeze(bool on) { frozen.fill(on ? 1 : 0); }
  bool uses_batch_statistics() const { return training && frozen.item() == 0; }
};

/// w' = w * factor, b' = beta + (b - running_mean) * factor, factor = gamma / sqrt(running_var +
/// epsilon).   docs/quantization.md (15)
/// Shapes: weight [C, ...], bias [C] or undefined  ->  the same shapes, bias defined.
/// Gradient: w' passes its gradient to weight and gamma. If batch statistics are not used, b'
/// passes its gradient to bias, gamma and beta. The running statistics are constants. A |gamma|
/// below 1e-5 counts as 1e-5, so that the body slot can divide by the factor.
/// Throws: ShapeError if the bias is not [C].
/// Source: Krishnamoorthi 2018, section 3.2.2; Jacob et al. 2018, equation 14.
Weights fold_batch_norm(const Weights& product, const Folding& folding);
/// The two parts of fold_batch_norm: b' and the factor, and w' from this factor. While batch
/// statistics are used, b' has no gradient: it only helps to choose the scale of the weights, and
/// the body slot adds the product's own bias b.
struct FoldedBias {
  Tensor bias;    ///< b' [C]
  Tensor factor;  ///< [C]
};
FoldedBias fold_bias(const Weights& product, const Folding& folding);
Tensor fold_weight(const Tensor& weight, const Tensor& factor);

/// Body slot of a batch norm in a prepared network. There are three cases:
///   - A product folds the batch norm, and batch statistics are not used (in evaluation, or once
///     frozen): y = u, the product's output.
///   - A product folds the batch norm, and batch statistics are used: y = batch_norm(u / factor +
///     b), with the product's bias b. This removes the factor and normalizes by the batch.
///   - No product folds the batch norm, or a Calibration or FloatMode is open: y = batch_norm(u).
/// The state stores whether the batch norm is frozen.   docs/quantization.md (15), (24)
///
/// While batch statistics are used, it fuses the activation that follows, and a FakeQuantize if
/// that takes no more than the range of the values. In a recording, each layer computes its own
/// part.
class PreparedBatchNorm : public Module {
 public:
  explicit PreparedBatchNorm(std::shared_ptr<Folding> folding) : folding_(std::move(folding)) {
    add_buffer("frozen", folding_->frozen);
  }
  std::string_view type() const override { return "PreparedBatchNorm"; }
  /// Throws: GraphError if the layer was moved from.
  Folding& folding() &;
  Folding& folding() && = delete;
  bool fuse(Tensor& u, Activation activation, Module*& output) override;

 protected:
  Tensor take_forward(Tensor u) override;
  void on_train(bool training) override { folding().training = training; }

 private:
  Tensor normalized(Tensor u, BatchNormOptions options);

  std::shared_ptr<Folding> folding_;
};

}  // namespace quantrain::quant
