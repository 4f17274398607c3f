#pragma once

#include <vector>

#include "layers/network/network.hpp"

namespace quantrain {

/// Makes a Network from any module, by what a pass over an example records. Layers and the tensors
/// of the module's own are shared: both networks hold the same parameters and buffers, compute the
/// same bits, and training one trains the other. Each layer has the mode (training or evaluation)
/// that it has in the module. If the module is prepared for quantization, the network is prepared
/// in the same way; the state of its slots (ranges, scales, phases, observers) is a copy.
///
/// A step is named by the path of its layer. A layer that runs twice gives two steps that share
/// parameters, the second with "_2" after its name. What forward() computes outside of layers
/// becomes a layer, named by its operation: "block.add". A module that runs one operation, without
/// children, parameters and constants, becomes a layer under its own path. Other tensors that
/// operations read, such as the 2 of 2 * x, become constants.
///
/// The network works for any number of samples, and other sizes of the example only where layers
/// do: the kernel of global_avg_pool2d(x) is that of the example, the layer GlobalAvgPool2d fits
/// any image. examples: batches [N, ...], with codes if they have a range. Their shapes and ranges
/// become those of the inputs.
/// Throws: as check_examples(); what the module throws for this example, and for a batch of twice
/// its size in training mode; GraphError naming layer and operation, if an operation is not known
/// by its name (register_operation), if the module computes other operations in training than in
/// evaluation, if a layer with parameters was not registered by add(), or if the result depends on
/// what was not recorded. On an error, and without one, the module is as before.
Network trace(Module& net, const Tensor& example);
Network trace(Module& net, const std::vector<Tensor>& examples);

}  // namespace quantrain
