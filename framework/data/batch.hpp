#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/autograd/ops/cross_entropy.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// A batch of samples in the form that a network takes, with their targets.
struct Batch {
  Tensor input;  ///< [B, ...]: the first input, for most networks the only one; carries its codes
                 ///< if it was made from codes
  std::vector<int32_t> labels;        ///< [B]; empty if targets are tensors
  std::vector<Tensor> targets{};      ///< [B, ...] each; mixup of labels gives one, [B, classes]
  std::vector<Tensor> more_inputs{};  ///< [B, ...] each, for networks with several inputs

  int64_t size() const;
  /// All inputs. If the network has several, call net(batch.inputs()).
  std::vector<Tensor> inputs() const;
  /// [B, ...]: the 8-bit codes of `input`. The span is valid as long as `input`.
  /// Throws: DataError if `input` was not made from codes, or was later changed or moved from.
  std::span<const uint8_t> bytes() const&;
  std::span<const uint8_t> bytes() const&& = delete;
};

/// Cross entropy with what the batch has: its only target tensor (probabilities, such as mixup's,
/// or labels of pixels), else its labels. So the same loss trains with and without mixup.
///   loss = cross_entropy(net(batch.input), batch);
/// Throws: as cross_entropy() of logits and targets or labels; DataError if the batch has several
/// targets, or neither targets nor labels.
Tensor cross_entropy(const Tensor& logits,
                     const Batch& batch,
                     const CrossEntropyOptions& options = {});

/// The inputs of a Batch, or of any type with a member `input`.
template <class B>
std::vector<Tensor> inputs_of(const B& batch) requires requires {
  batch.input;
}
{
  if constexpr (requires { batch.inputs(); }) {
    return batch.inputs();
  } else {
    return {batch.input};
  }
}

}  // namespace quantrain
