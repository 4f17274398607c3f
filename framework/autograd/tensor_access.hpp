#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

struct NamedState;

/// What the weight slot of a product (a convolution or linear layer) changed, to be undone by the
/// batch norm that the slot folds.   docs/quantization.md (15)
struct Rescaling {
  Tensor factor;  ///< [C], by which the slot multiplied the weights; undefined if it did not
  Tensor bias;    ///< [C], the product's own bias, which the batch norm adds; may be undefined
};

/// Tensor functions for operations and for the library itself, not for users of the library.
/// Authors of operations include node.hpp, which includes this header.
class TensorAccess {
 public:
  /// An integer operation's result, whose quantization parameters are not known yet.
  static Tensor from_waiting(const Shape& shape,
                             std::shared_ptr<const WaitingResult> waiting,
                             Activation activation = Activation::kNone);
  /// Throws: GraphError if the kind is not kWaiting, or the value was freed.
  static const std::shared_ptr<const WaitingResult>& waiting(const Tensor& x);
  /// A tensor of floats in the memory of x's integer sums, which still holds the integers. x then
  /// has no value, unless it was read as floats before. Undefined if another handle refers to x or
  /// its waiting result.
  static Tensor take_sums(const Tensor& x);
  /// The activation that is still to be applied to the waiting result.
  static Activation activation(const Tensor& x);
  /// The same waiting result with another activation to apply.
  static Tensor with_activation(const Tensor& x, Activation activation);
  /// Whether x holds floats, and no other handle refers to x or to its memory. An operation that
  /// got x by value may then store its result there: nobody can read x afterwards.
  static bool is_sole(const Tensor& x);
  /// A tensor of floats in the memory of x, which then has no value. Only if is_sole(x).
  static Tensor take_floats(const Tensor& x);

  /// Parameters of the codes. They remain known after the value was freed.
  /// Throws: GraphError unless the kind is kCodes.
  static const QParams& code_params(const Tensor& x);

  /// The buffer that holds the floats, for views that share it. Whoever holds the buffer may write
  /// to it, so the tensor loses its source codes.
  /// Throws: GraphError unless the tensor holds floats.
  static std::shared_ptr<Buffer<float>> buffer(const Tensor& x);
  /// The same value with another shape, without history. Keeps the source codes, unless they have
  /// features and the length of the last axis changes. Codes with per-channel parameters become
  /// floats.
  /// Throws: ShapeError if the number of elements differs.
  static Tensor with_shape(const Tensor& x, const Shape& shape);
  /// The same value as floats, without history; shares them if the tensor holds floats.
  static Tensor as_floats(const Tensor& x);
  /// A tensor of x's shape for a result that is computed from x element by element. Returns x
  /// itself if it holds floats, has no node, and no other handle refers to it or to its memory;
  /// else a new tensor.
  static Tensor overwritable(const Tensor& x);

  /// Number of handles on this tensor, including this one.
  static long handles(const Tensor& x) { return x.state_.use_count(); }
  /// A tensor with x's place in the graph, but without its value. A node holds such a tensor in
  /// place of an input whose value its backward() does not read. Reading the value throws
  /// GraphError.
  static Tensor without_value(const Tensor& x);
  static void set_node(Tensor& x, std::shared_ptr<Node> node, bool requires_grad);

  /// Parameters that the network got after parameter x and that must be trained together with x,
  /// such as the learned scales of a prepared network. An optimizer that was made before they were
  /// added lacks them; its step() throws if they have gradients. Null if there are none.
  using Companions = std::shared_ptr<const std::vector<NamedState>>;
  static const Companions& companions(const Tensor& x);
  static void set_companions(Tensor& x, Companions companions);

  /// The domain of parameter x: the least value of each element. Optimizer::step() raises elements
  /// that its update left below. An operation whose parameter has a domain, such as a learned
  /// scale, sets the values in each backward pass; those of the last one count. Null: any value is
  /// allowed.
  using Least = std::shared_ptr<const std::vector<float>>;
  static const Least& least(const Tensor& x);
  static void set_least(const Tensor& x, Least least);

  /// As y.backward(). Calls on_final(leaf) for each leaf that the pass reaches, as soon as no later
  /// node adds to the leaf's gradient, so that it can be used while the pass goes on. An exception
  /// of on_final ends the pass.
  using OnFinal = std::function<void(Tensor& leaf)>;
  static void backward(const Tensor& y, const OnFinal& on_final);
  /// Equal for handles of the same tensor.
  static const void* identity(const Tensor& x) { return x.state_.get(); }

  /// The rescaling of the product that computed x; null if its weights were not rescaled. Results
  /// of other operations have none, except dropout(x).
  static const std::shared_ptr<const Rescaling>& rescaling(const Tensor& x);
  static void set_rescaling(Tensor& x, std::shared_ptr<const Rescaling> rescaling);
};

}  // namespace quantrain
