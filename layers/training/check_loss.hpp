#pragma once

#include <cstdint>
#include <vector>

#include "framework/autograd/named_state.hpp"
#include "framework/data/loader.hpp"
#include "framework/optim/optimizer.hpp"
#include "layers/module.hpp"

namespace quantrain {

/// Refuses the first loss of fit() if it is not one number or would not train the network.
/// also: tensors that the caller trains otherwise.
/// Throws: ShapeError unless the loss has one element; DataError if it depends on no parameter of
/// the network or of the optimizer, or on a named leaf that is a parameter of neither and not in
/// `also`. Most often, such a leaf is the weight of a layer that is a plain member. A leaf without
/// a name is the caller's own, such as an input whose gradient the loss needs.
void check_loss(const Tensor& loss,
                const Module& net,
                const Optimizer& optimizer,
                const std::vector<NamedState>& also);

/// Refuses data whose last batch has one sample, if the first loss depends on a batch norm that
/// normalizes one value per sample and channel by the batch's statistics.
/// samples: of the batch that gave the loss.
/// Throws: ShapeError naming the layer.
void check_last_batch(const Tensor& loss, int64_t samples, const DataLoader& loader);

}  // namespace quantrain
