#pragma once

#include <memory>
#include <vector>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

struct NamedTensor;

/// What operations and the engine ask of a tensor, and users do not. node.hpp includes it: the
/// author of an operation includes that.
class TensorAccess {
 public:
  /// An integer operation's result before its output's parameters are known.
  static Tensor from_accumulators(const Shape& shape,
                                  std::shared_ptr<const Accumulators> accumulators,
                                  Activation activation = Activation::kNone);
  /// Throws: GraphError unless the kind is kAccumulators, or if the value was freed.
  static const std::shared_ptr<const Accumulators>& accumulators(const Tensor& x);
  /// What is still to be applied to the accumulators.
  static Activation activation(const Tensor& x);
  /// Same accumulators after an activation.
  static Tensor with_activation(const Tensor& x, Activation activation);
  /// What the codes mean; also where the value was freed.
  /// Throws: GraphError unless the kind is kCodes.
  static const QParams& code_params(const Tensor& x);

  /// The floats' owner, for views that share them. Who has it may write: source codes are gone.
  /// Throws: GraphError unless the tensor holds floats.
  static std::shared_ptr<Buffer<float>> buffer(const Tensor& x);
  /// Same value and history-free handle with another shape. Source codes stay, unless they have
  /// features and the last axis is another one.
  /// Throws: ShapeError if elements differ.
  static Tensor with_shape(const Tensor& x, const Shape& shape);
  /// Same value as floats, without history; shares them where the tensor holds floats.
  static Tensor as_floats(const Tensor& x);
  /// A tensor of this shape for a result that is computed from these floats, element by element:
  /// x itself where this is the only handle on it and its memory, else a new one.
  static Tensor overwritable(const Tensor& x);

  /// How many handles there are on this tensor, this one included.
  static long handles(const Tensor& x) { return x.state_.use_count(); }
  /// Same place in the graph, but the value is not kept alive: what a node holds of an input that
  /// its gradient does not read. Reading the value throws GraphError.
  static Tensor without_value(const Tensor& x);
  static void set_node(Tensor& x, std::shared_ptr<Node> node, bool requires_grad);

  /// Parameters that are to be trained with this one and came after it, such as the scales that
  /// preparing a network plugs in: an optimizer made before does not have them. Null: none.
  using Companions = std::shared_ptr<const std::vector<NamedTensor>>;
  static const Companions& companions(const Tensor& x);
  static void set_companions(Tensor& x, Companions companions);
};

}  // namespace quantrain
