#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/autograd/node.hpp"
#include "layers/module.hpp"

// What trace() reads: the calls of known layers, and the operations outside of them.
namespace quantrain {

/// Where a value comes from: an input, a call, or neither.
struct Origin {
  enum Kind { kInput, kCall, kLeaf, kAbsent };
  Kind kind = kAbsent;
  size_t index = 0;  ///< of the input or call
  Tensor leaf{};     ///< a parameter, buffer or constant
};

/// A layer that ran, or an operation that no known layer ran.
struct Call {
  Module* layer = nullptr;           ///< null: an operation
  std::shared_ptr<const Node> node;  ///< null: a layer
  std::string path;                  ///< of the layer, or of the module whose forward() ran it
  std::vector<Origin> inputs;
  Tensor output;
  uint64_t position = 0;  ///< in the order of the pass
};

struct RecordedCalls {
  std::vector<Call> calls;  ///< in the order of the pass; only those that lead to an output
  std::vector<Origin> outputs;
  std::vector<Tensor> values;  ///< of the outputs
};

/// Whether both have the same shape and the same bits, as floats.
bool same_bits(const Tensor& a, const Tensor& b);

/// Runs the module once, without gradients and in its current modes.
/// Throws: GraphError if a known layer gives several results; what the module throws.
RecordedCalls record_calls(Module& net, const std::vector<Tensor>& inputs);

}  // namespace quantrain
