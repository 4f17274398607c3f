#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// Samples as a network takes them, with what it is to give for them.
struct Batch {
  Tensor images;  ///< [B, ...]: the first input, of most networks the only one; with the codes it
                  ///< is made from where it has codes
  std::vector<int32_t> labels;        ///< [B]; empty where targets are tensors
  std::vector<Tensor> targets{};      ///< [B, ...] each; with mixup: [B, classes] beside the labels
  std::vector<Tensor> more_inputs{};  ///< [B, ...] each, of networks that take several

  int64_t size() const;
  /// All inputs: net(batch.inputs()) for a network that takes several.
  std::vector<Tensor> inputs() const;
  /// [B, ...]: the images as the 8-bit codes of the input; valid as long as the images.
  /// Throws: DataError if the images were written since they were made, or never had codes.
  std::span<const uint8_t> bytes() const&;
  std::span<const uint8_t> bytes() const&& = delete;
};

/// The inputs of a Batch, or of one's own type with a member `images`.
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
