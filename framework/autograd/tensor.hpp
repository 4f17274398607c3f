#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "framework/autograd/value.hpp"

namespace quantrain {

class Node;

/// Floats of a tensor for reading: the tensor's own where it holds floats, else a temporary made
/// from its codes or accumulators. Keeps what it points to alive.
class Floats {
 public:
  explicit Floats(std::shared_ptr<const Buffer<float>> buffer) : buffer_(std::move(buffer)) {}
  const float* data() const { return buffer_->data(); }
  operator const float*() const { return buffer_->data(); }

 private:
  std::shared_ptr<const Buffer<float>> buffer_;
};

/// A cheap handle on a value, its gradient and the node that made it; copies share all three. A
/// value is float32, codes or accumulators (ValueKind), dense and row-major; images are [N, H, W,
/// C].
class Tensor {
 public:
  /// Undefined: no value; stands for an absent operand, such as a bias.
  Tensor() = default;

  /// Uninitialised floats.
  static Tensor empty(const Shape& shape);
  static Tensor zeros(const Shape& shape);
  static Tensor full(const Shape& shape, float value);
  /// Throws: ShapeError if the number of values, or codes, is not that of the shape.
  static Tensor from(const Shape& shape, std::span<const float> values);
  static Tensor from_codes(const Shape& shape, std::shared_ptr<const Codes> codes);
  /// Floats that carry the codes they are made from, here and in this thread: a batch. Operations
  /// see floats; what quantizes them takes the codes.
  /// Throws: ShapeError as from_codes; QuantError as Codes::decode, or if features are not as many
  /// as the last extent.
  static Tensor decoded(const Shape& shape, std::shared_ptr<const Codes> codes);
  static Tensor from_accumulators(const Shape& shape,
                                  std::shared_ptr<const Accumulators> accumulators,
                                  Activation activation = Activation::kNone);

  bool defined() const { return state_ != nullptr; }
  const Shape& shape() const;
  int rank() const { return shape().rank(); }
  int64_t dim(int axis) const { return shape()[axis]; }
  int64_t elements() const { return shape().elements(); }

  ValueKind kind() const;
  /// Floats for reading, made on demand and not kept.
  /// Throws: GraphError if the tensor is undefined.
  Floats floats() const;
  /// Floats for reading that stay valid as long as the tensor; made on demand and kept.
  const float* data() const;
  /// Floats for writing; counts a new version. Throws: GraphError unless the tensor holds floats.
  float* mutable_data();
  /// The floats' owner, for views that share them. Who has it may write: source codes are gone.
  /// Throws: GraphError unless the tensor holds floats.
  std::shared_ptr<Buffer<float>> buffer() const;
  /// The only element. Throws: ShapeError if there is not exactly one.
  float item() const;
  /// Throws: GraphError unless kind() is kCodes, or kAccumulators.
  const std::shared_ptr<const Codes>& codes() const;
  const std::shared_ptr<const Accumulators>& accumulators() const;
  /// What the floats were made from by decoded(). Null where they were written since, through any
  /// tensor that shares them, or never had codes.
  std::shared_ptr<const Codes> source_codes() const;
  /// What the codes mean; also where the value was freed. Throws: GraphError unless kind() is
  /// kCodes.
  const QParams& code_params() const;
  /// What is still to be applied to the accumulators.
  Activation activation() const;

  /// Changes with every write through mutable_data() of a tensor that shares these floats: what was
  /// packed or quantized from an older version is stale.
  uint64_t version() const;

  bool requires_grad() const;
  /// Returns *this. Throws: GraphError if the tensor is the result of a recorded operation.
  Tensor& set_requires_grad(bool requires_grad);
  /// Undefined until a backward pass has reached this leaf.
  Tensor grad() const;
  void set_grad(Tensor grad);  ///< undefined: none; throws ShapeError unless shaped like this
  void zero_grad() { set_grad(Tensor()); }

  /// Accumulates d(this)/d(leaf) into the gradient of every leaf that requires one, and did when it
  /// was used, in a fixed order, iteratively; a gradient shares its memory with nothing else. What
  /// the graph saved is freed on the way, unless keep_graph. Throws, before any gradient has
  /// changed: ShapeError unless this is a single element; GraphError if nothing was recorded, the
  /// graph was freed, or an input or a result was written since it was recorded.
  void backward(bool keep_graph = false);

  /// Same value, no history, no gradient.
  Tensor detach() const;
  /// Same value and history-free handle with another shape; for operations. Source codes stay,
  /// unless they have features and the last axis is another one.
  /// Throws: ShapeError if elements differ.
  Tensor with_shape(const Shape& shape) const;
  /// Same value as floats, without history; shares them where the tensor holds floats.
  Tensor as_floats() const;
  /// A tensor of this shape for a result that is computed from these floats, element by element:
  /// the same tensor where this is the only handle on it and its memory, else a new one.
  Tensor overwritable() const;
  /// How many there are on this tensor, this one included.
  long handles() const { return state_.use_count(); }
  /// Same place in the graph, but the value is not kept alive: what a node holds of an input that
  /// its gradient does not read. Reading the value throws GraphError.
  Tensor without_value() const;
  /// Same accumulators behind an activation; for operations.
  Tensor with_activation(Activation activation) const;

  /// Name in dumps of the graph: of a parameter, or of an input.
  const std::string& name() const;
  Tensor& set_name(std::string name);

  /// The operation that made this, if it was recorded.
  const std::shared_ptr<Node>& node() const;
  void set_node(std::shared_ptr<Node> node, bool requires_grad);

  /// Whether both handles mean the same tensor.
  friend bool operator==(const Tensor& a, const Tensor& b) { return a.state_ == b.state_; }

 private:
  struct State;
  explicit Tensor(std::shared_ptr<State> state) : state_(std::move(state)) {}
  State& state() const;

  std::shared_ptr<State> state_;
};

}  // namespace quantrain
