#pragma once

#include <vector>

#include "layers/module.hpp"

// Networks that were trained on normalized inputs, z = (x - mean) / deviation for each channel, as
// torchvision's Normalize makes them.
namespace quantrain {

/// For each channel, or one number for all of them.
struct Normalization {
  std::vector<float> mean;
  std::vector<float> deviation;
};

/// Changes a network that takes z = (x - mean) / deviation into one that takes x, with the same
/// outputs up to float rounding. The first layer gets
///     weight = weight / deviation,  bias = bias - sum of weight * mean / deviation.
/// If the layer has no bias, the running mean of the batch norm after it changes instead. Call this
/// after the trained weights are loaded and before the network is prepared for quantization. Bytes
/// then are their own codes; of z, codes would be up to half a step off, because real 0 must have a
/// code.   docs/quantization.md (12)
/// The first layer is a Conv2d, Conv1d or Linear, also after a Flatten or Reshape. Its padding
/// would be wrong: zeros of z are the mean of x. With OnesChannel before it, it may pad: then the
/// weights of the ones, 0 before, become -sum of weight * mean / deviation for each tap.
/// example: a batch of x, [N, ..., C]. If it has codes, the means must lie in their range.
/// Throws: DataError unless mean and deviation have one number or one for each channel, all finite,
/// deviations positive, and means within the example's range; GraphError if the first layer is none
/// of these, shares its weight, pads, or has neither a bias nor a batch norm, if the weights of the
/// ones are not 0, if the layer was folded already, or if the network is prepared for quantization.
/// On an error, nothing changes. A second call is noticed as long as the layer still has the weight
/// that the first one left: after load() of the trained weights, fold again. In a new network that
/// loads a folded state, a second call cannot be noticed, except with OnesChannel: save the state
/// before you fold, or do not fold again.
void fold_normalization(Module& net, const Tensor& example, const Normalization& normalization);

}  // namespace quantrain
