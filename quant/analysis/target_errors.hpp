#pragma once

#include <cstdint>
#include <vector>

#include "framework/autograd/tensor.hpp"
#include "quant/analysis/diagnosis.hpp"

namespace quantrain::quant {

/// The errors of one output to its targets, in float and in integers, channel by channel.
class TargetErrors {
 public:
  /// Of outputs with more channels, such as the pixels of an autoencoder, no single rows are kept.
  static constexpr int64_t kMostChannels = 64;

  /// Adds a batch. clipped: for each sample, whether a value of its inputs has the first or the
  /// last code, as values have that saturated when they were encoded.
  /// Shapes: all tensors [N, ..., channels]; for one channel, also target [N, ...].
  void add(const Tensor& target,
           const Tensor& floats,
           const Tensor& integers,
           const std::vector<bool>& clipped);

  /// Sets what concerns the targets in the output's channels. Does nothing if there were none.
  void describe(std::vector<OutputDiagnosis>& channels) const;

 private:
  // One channel of one sample; errors are means of squares over the sample's positions.
  struct Row {
    float least = 0.0f;  // of the targets
    float most = 0.0f;
    double in_float = 0.0;
    double in_integers = 0.0;
    bool clipped = false;
  };
  struct Channel {
    double in_float = 0.0;  // sums of squares
    double in_integers = 0.0;
    std::vector<Row> rows;
  };

  static LargestTargets largest(std::vector<Row> rows);
  static ClippedRows clipped(const std::vector<Row>& rows);

  std::vector<Channel> channels_;
  int64_t values_ = 0;  // of a channel
};

}  // namespace quantrain::quant
