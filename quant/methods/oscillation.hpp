#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "quant/methods/products.hpp"

namespace quantrain::quant {

struct OscillationOptions {
  /// A weight is frozen when it turned back in more than this share of the latest steps.
  float threshold = 0.02f;
  /// Weight of a step in the moving averages of turns and codes, in (0, 1].
  float momentum = 0.01f;
};

/// Freezes weights that jump to and fro between two codes, while a prepared network trains. Such a
/// weight cannot settle, and disturbs the statistics of batch norms. Made after prepare_qat, and
/// called after each step:
///   quant::OscillationFreezing freezing(net);
///   fit(net, optimizer, loader, loss, {.after_step = freezing.after_step(),
///                                      .also = freezing.state()});
/// Of each weight, with its code q[t] after step t and the sign of the last change of its code d:
///   turned[t] = 1 if q[t] - q[t-1] has the sign -d, else 0
///   f[t] = m turned[t] + (1 - m) f[t-1],  mean[t] = m q[t] + (1 - m) mean[t-1]
/// with f[0] = 0, mean[0] = q[0] and momentum m. When f[t] > threshold, the weight is frozen at the
/// code half_even(mean[t]), with 1 bit at -1 if mean[t] < 0, else at +1: after each step it is the
/// real value of that code, divided by the factor of a folded batch norm. Where that is not finite,
/// the weight is left alone. When the bits of a layer fall, its codes and means are those of its
/// weights with the new bits, f and d are 0, and frozen weights stay frozen at their new codes.
/// The codes are those of params() of the weight's slot. They are deployed, unless a bias needs a
/// larger scale (5). The network must outlive this object and what after_step() returns, and keep
/// its slots.
/// Source: Nagel et al. 2022, Overcoming Oscillations in Quantization-Aware Training, algorithm 1.
class OscillationFreezing {
 public:
  /// Throws: GraphError if the network is not prepared; DataError if an option is out of range;
  /// QuantError if it has no quantized weights, or naming a layer whose weights must not be changed
  /// (Product::fixed), or whose scales are neither learned nor given: those follow from the
  /// weights, so freezing would shrink them.
  explicit OscillationFreezing(Module& net, const OscillationOptions& options = {});

  /// What FitOptions::after_step calls. In a loop of your own, call step() after each step.
  std::function<void(int64_t step, float loss)> after_step();
  void step();
  /// For FitOptions::also: the codes, averages, frozen weights and bits.
  std::vector<NamedState> state() const;
  /// How many weights are frozen.
  int64_t frozen() const;
  /// The number of weights that are watched.
  int64_t weights() const;

 private:
  struct Layer {
    Product product;
    Tensor code, direction, frequency, mean, frozen;  // of each weight; frozen is 0 or 1
    IntegerBuffer bits;                               // [1]: those of the codes
  };
  /// Sets all but `frozen` from the weights.
  static void start(Layer& layer);
  void update(Layer& layer) const;

  OscillationOptions options_;
  std::shared_ptr<std::vector<Layer>> layers_;
};

}  // namespace quantrain::quant
