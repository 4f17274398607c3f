#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/arithmetic/qparams.hpp"
#include "framework/core/shape.hpp"
#include "framework/metrics/metrics.hpp"
#include "quant/analysis/finding.hpp"

// What diagnose() finds out about a prepared network, as plain data.
namespace quantrain::quant {

/// The float values of a layer, or of the input.
struct ValueDistribution {
  int64_t values = 0;
  Range range;    ///< smallest and largest value
  Range central;  ///< holds 99 % of the values: 0.5 % lie below it and 0.5 % above
  double rms = 0.0;
  /// Number of values in equal parts of `range`, or empty if all values are equal. The parts come
  /// from finer bins, so a value close to a border may be counted in the next part.
  std::vector<int64_t> counts;
};

/// How the weights of a product are quantized, with batch norms folded.
struct WeightsDiagnosis {
  QType type;
  bool per_channel = true;
  bool learned = false;
  int64_t channels = 0;
  double snr = 0.0;           ///< in decibels
  double worst_snr = 0.0;     ///< of the worst channel that is not all zeros
  int64_t worst_channel = 0;  ///< along the first axis of the weights
  /// Codes that a channel's range covers, from its largest |weight|. The median of all channels.
  double median_codes = 0.0;
  /// The largest |weight| of a channel, divided by the lower median of those that are not 0.
  double largest_to_median = 1.0;
  int64_t largest_channel = 0;
  /// scale * qmax / largest |weight|, of the channel where this is farthest from 1: below 1,
  /// weights saturate, above 1, codes lie idle.
  double scale_to_weights = 1.0;
  /// Channels whose learned scale is stuck. See kStuckRatio in findings.hpp.
  int64_t stuck_scales = 0;
  /// Root mean square of bias - bias_q * scale, in the unit of the output. docs/quantization.md (6)
  double bias_error = 0.0;
  /// That error's share of the layer's noise (snr_alone).
  double bias_share = 0.0;
};

/// The int32 sums of a product.
struct AccumulatorDiagnosis {
  int64_t largest = 0;  ///< largest |sum| that was seen
  int64_t bound = 0;    ///< no input can exceed it.   docs/quantization.md (7)
  /// log2(2^31 / largest): bits that were never needed.
  double headroom_bits = 0.0;
};

/// The rows of an output channel whose targets lie farthest from the median of all targets: one of
/// 100, at least one.
struct LargestTargets {
  int64_t rows = 0;
  Range targets;          ///< smallest and largest of these targets
  double distance = 0.0;  ///< root mean square of their distances from the median
  double rmse_float = 0.0;
  double rmse_integers = 0.0;
};

/// The rows in which a value of an input has the first or the last code, and the error in float of
/// these rows and of all others.
struct ClippedRows {
  int64_t rows = 0;
  double rmse_float = 0.0;
  double rmse_float_others = 0.0;
};

/// One channel (index along the last axis) of an output of the network.
struct OutputDiagnosis {
  std::string name;        ///< "output", or "output1"; "[2]" follows if it has several channels
  double spread = 0.0;     ///< standard deviation of the float values
  double rmse = 0.0;       ///< of the integers' values against the float values, in their unit
  double max_error = 0.0;  ///< largest |difference|
  double relative = 0.0;   ///< rmse / spread; 0 if rmse is 0
  /// Root mean square of the error against the batch's targets, if there are any.
  std::optional<double> target_rmse_float{};
  std::optional<double> target_rmse_integers{};
  /// Also empty if the output has more than 64 channels.
  std::optional<LargestTargets> largest_targets{};
  std::optional<ClippedRows> clipped_rows{};
};

/// One value of the network: an input or the output of a layer. All float values come from a pass
/// of the same network in FloatMode, on the same samples.
struct LayerDiagnosis {
  std::string name;       ///< path of the layer that computes it; "input" for the network's input
  std::string slot;       ///< path of the layer whose output slot has its range; empty: none
  std::string operation;  ///< "conv2d"; "input"
  bool is_input = false;
  bool is_output = false;
  std::vector<int> reads;           ///< positions in Diagnosis::layers
  std::optional<QParams> params{};  ///< of the codes; empty for accumulators
  bool learned = false;             ///< whether the range's scale is learned
  ValueDistribution floats;         ///< empty if the float pass has no such value
  /// Of an input: percentile_range() of its values, so with the middle 99 % of each feature and
  /// room around them. Values beyond it are spikes.
  Range usual{};

  double snr_alone = 0.0;        ///< only this layer's weights and output are quantized; decibels
  double snr_accumulated = 0.0;  ///< everything is quantized
  /// Share of the noise that this layer alone makes at the network's outputs, of the sum of what
  /// each layer makes alone.
  double noise_share = 0.0;
  /// The error at the network's outputs if only this layer is quantized: the largest over all
  /// output channels of root mean square error / spread of the channel's usual float values
  /// (interquartile range / 1.349, which is the standard deviation of normal values). For an input
  /// that carries codes, what moving each value by up to half a step changes. Findings are sorted
  /// by it.
  double output_error = 0.0;
  double rmse = 0.0;  ///< accumulated, in the unit of the layer
  double max_error = 0.0;
  double relative = 0.0;  ///< rmse / standard deviation of the float values; 0 if rmse is 0

  double saturated_low = 0.0;   ///< share of float values below the range of the codes
  double saturated_high = 0.0;  ///< above it
  /// Of an input that carries codes: the share of values that saturated when a Dataset or
  /// TensorDataset encoded them. Other sources do not say: 0.
  double saturated_encoding = 0.0;
  double at_limits = 0.0;  ///< share of the integers that are the first or the last code
  /// Root mean square of what quantizing the float values with this range changes, and the share of
  /// that squared error that comes from saturating values.
  double range_rmse = 0.0;
  double saturation_share = 0.0;
  int64_t codes_used = 0;      ///< different codes that the integers had
  int64_t codes = 0;           ///< number of codes; 0 for accumulators
  double codes_central = 0.0;  ///< codes within floats.central
  double codes_range = 0.0;    ///< codes within floats.range
  double codes_usual = 0.0;    ///< codes within `usual`; 0 if it is not an input

  int64_t channels = 0;                 ///< along the last axis
  std::vector<Range> channel_ranges{};  ///< of the float values; empty if there are none
  int64_t constant = 0;                 ///< channels whose integers never change
  int64_t constant_float = 0;           ///< channels whose float values never change
  /// The largest |value| of a channel, divided by the lower median of those that are not 0.
  double largest_to_median = 1.0;
  int64_t largest_channel = 0;

  std::optional<WeightsDiagnosis> weights{};
  std::optional<AccumulatorDiagnosis> accumulators{};

  double saturated() const { return saturated_low + saturated_high + saturated_encoding; }
};

/// Confusion matrices of a classifier.
struct ClassesDiagnosis {
  ConfusionMatrix floats;
  ConfusionMatrix simulated;
  ConfusionMatrix integers;
};

/// A sample whose output changed much.
struct SampleDiagnosis {
  int64_t index = 0;   ///< in the order of the data
  double error = 0.0;  ///< root mean square of what the integers changed in the first output
  std::optional<int32_t> label{};
  Shape shape;                  ///< of the first input
  std::vector<float> input{};   ///< as the network sees it; empty if it is large
  std::vector<float> floats{};  ///< first output
  std::vector<float> integers{};
};

/// The result of diagnose().
struct Diagnosis {
  int64_t samples = 0;
  int64_t integers_different = 0;  ///< outputs that differ between simulation and integer program
  std::vector<LayerDiagnosis> layers;
  std::vector<OutputDiagnosis> outputs;
  std::optional<ClassesDiagnosis> classes{};  ///< if the batches have labels
  std::vector<SampleDiagnosis> worst;         ///< the worst first
  std::vector<Finding> findings;              ///< the worst first

  /// The layer at this path.   Throws: GraphError if there is none.
  const LayerDiagnosis& layer(std::string_view name) const&;
  LayerDiagnosis layer(std::string_view name) const&& { return layer(name); }

  /// The two numbers that matter: the layer with the largest saturated share, null if nothing
  /// saturates, and the layer with the lowest snr_accumulated, null if all are exact.
  const LayerDiagnosis* most_saturated() const&;
  const LayerDiagnosis* noisiest() const&;
  const LayerDiagnosis* most_saturated() const&& = delete;
  const LayerDiagnosis* noisiest() const&& = delete;

  std::string to_json() const;
  /// A self-contained page with pictures and without scripts, for screens from 400 pixels' width
  /// and for print.
  std::string to_html(const std::string& title = "Diagnosis") const;
};

/// Prints the findings, a table of the layers, the recall of each class and the error of each
/// output.
std::ostream& operator<<(std::ostream& stream, const Diagnosis& diagnosis);

}  // namespace quantrain::quant
