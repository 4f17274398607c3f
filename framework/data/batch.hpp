#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// A batch of samples in the form that a network takes, with their targets.
struct Batch {
  Tensor images;  ///< [B, ...]: the first input, for most networks the only one; carries the codes
                  ///< that it is made from, if there are any
  std::vector<int32_t> labels;    ///< [B]; empty if targets are tensors
  std::vector<Tensor> targets{};  ///< [B, ...] each; with mixup, [B, classes] besides the labels
  std::vector<Tensor> more_inputs{};  ///< [B, ...] each, for networks with several inputs

  int64_t size() const;
  /// All inputs. A network with several inputs takes net(batch.inputs()).
  std::vector<Tensor> inputs() const;
  /// [B, ...]: the 8-bit codes of the images. Valid as long as the images.
  /// Throws: DataError if the images have no codes, or were written or moved since a data set made
  /// them.
  std::span<const uint8_t> bytes() const&;
  std::span<const uint8_t> bytes() const&& = delete;
};

/// The inputs of a Batch, or of any type with a member `images`.
template <class B>
std::vector<Tensor> inputs_of(const B& batch) requires requires {
  batch.images;
}
{
  if constexpr (requires { batch.inputs(); }) {
    return batch.inputs();
  } else {
    return {batch.images};
  }
}

}  // namespace quantrain
