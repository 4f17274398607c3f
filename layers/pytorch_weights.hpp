#pragma once

#include <map>
#include <string>
#include <vector>

#include "layers/module.hpp"

namespace quantrain {

struct PytorchOptions {
  /// Names there for names here: a whole name, or a path of modules, for all names below it. The
  /// longest match counts; "" means the root. Names without a match are the same in both.
  ///     {{"0", "features.0"}, {"classifier.weight", "fc.weight"}, {"1", ""}}
  std::map<std::string, std::string> names{};
  /// Entries of the file that the network does not need: whole names, or paths of modules. A path
  /// may stop within a name only before a dot.
  std::vector<std::string> ignored{};
};

/// Loads the weights of a PyTorch network into a float network of the same layers, from the file
/// that safetensors.torch.save_file(net.state_dict(), path) writes. Images are [N, H, W, C] here
/// and [N, C, H, W] there, so the values move:
///   weights of convolutions   [O, I, KH, KW] -> [O, KH, KW, I], [O, I, K] -> [O, K, I]
///   a Linear after a Flatten  columns, from the order [C, H, W] to [H, W, C]
///   a Linear before a Reshape to an image: rows and bias, likewise
///   a batch norm or PReLU between them, likewise
///   a convolution after OnesChannel: its last input channel, which PyTorch lacks, gets 0
/// Values may be F32, F16 or BF16; each is exact in float32. num_batches_tracked has no counterpart
/// here and is skipped.
/// example: a batch of the network's input, [N, ...]; it shows which sizes are flattened.
/// Throws: DataError if the file is damaged, lacks entries, has entries left over (the message names
/// all of them) or values of another type, or if a value is not finite; ShapeError if a shape
/// differs; GraphError if the network is prepared for quantization, if the order of features is
/// unknown (for example of a slice of a flattened image), or if two layers that share a weight need
/// it in different orders. On an error, nothing changes.
void load_pytorch(Module& net,
                  const Tensor& example,
                  const std::string& path,
                  const PytorchOptions& options = {});

}  // namespace quantrain
