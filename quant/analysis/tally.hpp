#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/autograd/tensor.hpp"
#include "quant/analysis/diagnosis.hpp"
#include "quant/observers/histogram.hpp"

namespace quantrain::quant {

/// Signal and noise, as sums of squares.
struct SignalNoise {
  double signal = 0.0;
  double noise = 0.0;

  /// Adds n values and what became of them.
  void add(int64_t n, const float* values, const float* changed);
  /// 10 log10(signal / noise) in decibels; infinite if there is no noise.
  double decibels() const;
};

/// The largest value divided by the lower median of those that are not 0; 1 if there are none. The
/// values are not negative.
double largest_to_median(std::vector<double> values);

/// Counts what happens to one value of a network, batch after batch. Its memory does not depend on
/// the number of samples.
class Tally {
 public:
  Tally(std::string name, int64_t channels);
  int64_t channels() const { return static_cast<int64_t>(channels_.size()); }

  /// Adds a batch: its float values and the values of its integers. codes: null for accumulators.
  /// Throws: DataError naming the layer if a value is NaN or infinite.
  void add(const Tensor& floats, const Tensor& simulated, const Codes* codes);
  /// Adds a batch without float values.
  void add(const Tensor& simulated, const Codes* codes);

  /// Everything that was counted, except snr_alone.
  void describe(LayerDiagnosis& row) const;
  /// Of each channel.
  std::vector<OutputDiagnosis> outputs(const std::string& name) const;

 private:
  struct Channel {
    int64_t values = 0;
    Range floats;
    Range integers;
    double sum = 0.0;
    double squares = 0.0;
    double noise = 0.0;
    double max_error = 0.0;
  };

  void add_codes(const Codes& codes, int64_t n);
  void add_range_errors(const float* values, int64_t n, const QParams& params);
  double spread(const Channel& channel) const;
  ValueDistribution distribution() const;

  std::string name_;
  std::vector<Channel> channels_;
  bool has_floats_ = false;
  std::unique_ptr<HistogramObserver> histogram_;
  std::array<int64_t, 256> codes_{};
  int64_t below_ = 0;
  int64_t above_ = 0;
  double range_error_ = 0.0;       // squared error of the range: sum of all values
  double saturation_error_ = 0.0;  // of the values that saturate
};

}  // namespace quantrain::quant
