#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <ranges>
#include <string>
#include <vector>

#include "framework/autograd/tensor.hpp"
#include "framework/core/error.hpp"
#include "framework/data/batch.hpp"
#include "framework/integer/integer_model.hpp"
#include "layers/module.hpp"

namespace quantrain::quant {

using quantrain::IntegerModel;

/// Sums of squares of float values, and of what the integers change.
struct ParityCost {
  double signal = 0.0;
  double noise = 0.0;

  /// 10 log10(signal / noise) in decibels; infinite without noise.
  double signal_to_noise() const;
};

/// How a layer's integers differ between the simulated and the deployed network.
struct LayerParity {
  std::string name;
  int64_t codes = 0;  ///< number of integers compared
  int64_t different = 0;
  int64_t max_difference = 0;  ///< in codes, or in units of the accumulators
  bool is_output = false;
  /// Against a float pass over Parity::measured samples: float values that the codes' range does
  /// not hold, and the sums of squares of the float values and of what the integers change. 0 if
  /// the float pass has no such value, or the layer passes on the codes of another.
  int64_t floats = 0;
  int64_t saturated = 0;
  double signal = 0.0;
  double noise = 0.0;
  /// The same for each channel (index along the last axis) of an output. Other layers: empty.
  std::vector<ParityCost> channels{};

  /// Share of the float values that saturate.
  double saturated_share() const;
  /// The channel with the lowest signal-to-noise of those that are not all 0 in float; -1 if there
  /// is none or no noise.
  int64_t worst_channel() const;
  /// 10 log10(signal / noise) in decibels; infinite without noise.
  double signal_to_noise() const;
};

/// The differences between the simulated and the deployed network, found integer by integer.
struct Parity {
  int64_t images = 0;
  int64_t measured = 0;  ///< samples that also ran in float, spread over the data
  /// The inputs first, then each step, except steps that lost channels in remove_dead_channels().
  std::vector<LayerParity> layers;
  int64_t logits = 0;  ///< of all outputs
  int64_t logits_different = 0;
  int64_t max_logit_difference = 0;
  /// Images for which some output has another class (IntegerModel::classify), at any position.
  int64_t top1_disagreements = 0;
  /// If the batch carries codes: the number of codes that the model computes from the raw values,
  /// and how many of these codes differ from the batch's. codes() does not include them.
  int64_t codes_from_floats = 0;
  int64_t codes_from_floats_different = 0;

  /// Number of compared integers that are not outputs (codes of inputs and intermediate values),
  /// over all images.
  int64_t codes() const;
  int64_t codes_different() const;
  /// Share of these integers that are equal; 1 if there are none.
  double codes_equal() const;
  /// Largest difference of one of these integers.
  int64_t max_code_difference() const;
  double logits_equal() const;
  /// What the integers cost, which parity does not show: the layer with the largest saturated
  /// share, null if nothing saturates, and the one with the lowest signal-to-noise, null if all are
  /// exact. diagnose() says more.
  const LayerParity* most_saturated() const&;
  const LayerParity* noisiest() const&;
  /// The output with the lowest signal-to-noise of a channel, which is its worst_channel(): a small
  /// channel beside a large one. Null if all are exact.
  const LayerParity* noisiest_output() const&;
  const LayerParity* most_saturated() const&& = delete;
  const LayerParity* noisiest() const&& = delete;
  const LayerParity* noisiest_output() const&& = delete;
  /// The first layer that differs, or "raw values" if only the codes from raw values differ; empty
  /// if nothing differs.
  std::string first_difference() const;

  void add(const Parity& other);
};

/// Prints a line for each layer, one for the outputs, one for raw values if the batch carries
/// codes, one for most_saturated() and noisiest(), one for noisiest_output() if it has several
/// channels, and the first layer that differs, if any.
std::ostream& operator<<(std::ostream& stream, const Parity& parity);

/// Runs a batch [N, ...] through the prepared network in deployed mode and through the model made
/// from it, and compares every intermediate code and the logits. If the batch carries codes, the
/// model runs on these codes. A second check then starts from raw values: it dequantizes the codes,
/// undoes the offsets and scales of features, has the model encode the result, and compares these
/// codes with those of the batch. Up to 256 samples, spread over the data, also run in FloatMode,
/// to measure what the integers cost. The network is left as it was.
/// Throws: ShapeError if the model does not take such samples or this number of inputs, or if the
/// inputs have different numbers of samples; QuantError if the batch, the network and the model
/// disagree on the parameters or features of the input's codes; GraphError if a batch is undefined
/// or the model was not converted from this network; DataError if there is nothing to compare;
/// what convert() throws.
Parity verify_parity(Module& net, const IntegerModel& model, const Tensor& batch);
/// The same for a network with several inputs.
Parity verify_parity(Module& net, const IntegerModel& model, const std::vector<Tensor>& batches);

namespace detail {
/// Chooses the samples that also run in float. Without a known number of samples: in the first
/// batch.
class ParitySamples {
 public:
  explicit ParitySamples(int64_t n);
  /// Those in the next batch, as indices in it.
  std::vector<int64_t> next(const std::vector<Tensor>& batch);

 private:
  std::optional<std::vector<int64_t>> picked_;
  int64_t seen_ = 0;
};

/// The same. measured: indices of the samples that also run in FloatMode.
Parity verify(Module& net,
              const IntegerModel& model,
              const std::vector<Tensor>& batches,
              const std::vector<int64_t>& measured);

int64_t batch_size(const std::vector<Tensor>& batches);

/// Number of samples of a loader or container; 0 if it is known only at the end.
template <class Batches>
int64_t sample_count(Batches& batches) {
  int64_t n = 0;
  if constexpr (requires { batches.samples().value_or(0); }) {
    n = batches.samples().value_or(0);
  } else if constexpr (std::ranges::forward_range<Batches&>) {
    for (const auto& batch : batches) n += batch_size(inputs_of(batch));
  }
  return n;
}
}  // namespace detail

/// The same for all batches of a loader or container. All inputs of a Batch are used. Any other
/// type of batch needs a member `input`, which is the only input.
template <class Batches>
Parity verify_parity(Module& net, const IntegerModel& model, Batches&& batches) requires requires {
  (*batches.begin()).input;
}
{
  Parity total;
  detail::ParitySamples samples(detail::sample_count(batches));
  for (const auto& batch : batches) {
    const std::vector<Tensor> inputs = inputs_of(batch);
    total.add(detail::verify(net, model, inputs, samples.next(inputs)));
  }
  if (total.images == 0) throw DataError("parity", "nothing to compare: there is no batch");
  return total;
}

}  // namespace quantrain::quant
