#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "framework/autograd/value.hpp"

namespace quantrain {

class Node;

/// A tensor's floats for reading: its own if it holds floats, else computed from its codes or
/// accumulators. Keeps their memory alive. Gives pointers only if it is a named variable:
///   const Floats y = net(x).floats();
class Floats {
 public:
  explicit Floats(std::shared_ptr<const Buffer<float>> buffer) : buffer_(std::move(buffer)) {}
  const float* data() const& { return buffer_->data(); }
  const float* data() const&& = delete;
  operator const float*() const& { return buffer_->data(); }
  operator const float*() const&& = delete;
  int64_t size() const { return buffer_->size(); }
  template <std::integral Index>
  float operator[](Index i) const {
    return buffer_->data()[i];
  }
  /// The buffer that holds the floats.
  std::shared_ptr<const Buffer<float>> owner() const { return buffer_; }

 private:
  std::shared_ptr<const Buffer<float>> buffer_;
};

/// A cheap handle on a value, its gradient and the node that made it; copies share all three. A
/// value is float32, codes or accumulators (ValueKind), dense and row-major; images are [N, H, W,
/// C]. Functions for operations and the library itself are in tensor_access.hpp.
class Tensor {
 public:
  /// An undefined tensor has no value. It stands for an absent operand, such as a bias.
  Tensor() = default;

  /// Uninitialised floats.
  static Tensor empty(const Shape& shape);
  static Tensor zeros(const Shape& shape);
  static Tensor full(const Shape& shape, float value);
  /// Throws: ShapeError if the number of values, or codes, does not match the shape.
  static Tensor from(const Shape& shape, std::span<const float> values);
  static Tensor from_codes(const Shape& shape, std::shared_ptr<const Codes> codes);
  /// Floats that carry the codes they are computed from, such as a batch. The codes are dequantized
  /// at once, in this thread. Operations see floats. The input of a prepared network
  /// (quant::InputQuantize) takes the codes.
  /// Throws: ShapeError as from_codes; QuantError as Codes::decode, or if the number of features is
  /// not the last extent.
  static Tensor decoded(const Shape& shape, std::shared_ptr<const Codes> codes);

  bool defined() const { return state_ != nullptr; }
  const Shape& shape() const&;
  Shape shape() const&&;
  int rank() const { return shape().rank(); }
  int64_t dim(int axis) const { return shape()[axis]; }
  int64_t elements() const { return shape().elements(); }

  ValueKind kind() const;
  /// Floats for reading, computed on demand and not kept.
  /// Throws: GraphError if the tensor is undefined.
  Floats floats() const;
  /// Floats for reading that stay valid as long as the tensor; computed on demand and kept.
  const float* data() const&;
  /// The same for a temporary tensor, whose pointer would dangle: the result keeps the memory
  /// alive, so net(x).data()[0] is valid.
  Floats data() const&& { return floats(); }
  /// Floats for writing; counts a new version. Throws: GraphError unless the tensor holds floats.
  float* mutable_data() &;
  float* mutable_data() && = delete;
  /// The only element. Throws: ShapeError if there is not exactly one.
  float item() const;
  /// Throws: GraphError unless kind() is kCodes, or if the value was freed.
  const std::shared_ptr<const Codes>& codes() const&;
  std::shared_ptr<const Codes> codes() const&& { return codes(); }
  /// The codes from which decoded() computed the floats. Null if there are none, or if the floats
  /// were written since through any tensor that shares them.
  std::shared_ptr<const Codes> source_codes() const;

  /// Changes with every call of mutable_data() on a tensor that shares these floats. Data that was
  /// packed or quantized from an older version is stale.
  uint64_t version() const;

  bool requires_grad() const;
  /// Returns *this. Throws: GraphError if the tensor is the result of a recorded operation.
  Tensor& set_requires_grad(bool requires_grad) &;
  Tensor set_requires_grad(bool requires_grad) && { return set_requires_grad(requires_grad); }
  /// Undefined until a backward pass has reached this leaf.
  Tensor grad() const;
  void set_grad(Tensor grad);  ///< undefined: no gradient; ShapeError if the shape differs
  void zero_grad() { set_grad(Tensor()); }

  /// Accumulates d(this)/d(leaf) into the gradient of every leaf that requires a gradient now and
  /// required one when it was used. The order of summation is fixed, and nothing recurses. A
  /// gradient shares its memory with nothing else. Frees the graph on the way, unless keep_graph.
  /// Throws, before any gradient has changed: ShapeError unless this is a single element;
  /// GraphError if nothing was recorded, the graph was freed, or one of its values was written
  /// after it was recorded: any result, or an input that a gradient reads.
  void backward(bool keep_graph = false);

  /// Same value, no history, no gradient.
  Tensor detach() const;
  /// Name of a parameter or input in dumps of the graph.
  const std::string& name() const&;
  std::string name() const&& { return name(); }
  Tensor& set_name(std::string name) &;
  Tensor set_name(std::string name) && { return set_name(std::move(name)); }

  /// The operation that made this, if it was recorded.
  const std::shared_ptr<Node>& node() const&;
  std::shared_ptr<Node> node() const&& { return node(); }

  /// Whether both handles refer to the same tensor, not whether their values are equal.
  bool same_as(const Tensor& other) const { return state_ == other.state_; }

 private:
  friend class TensorAccess;
  struct State;
  explicit Tensor(std::shared_ptr<State> state) : state_(std::move(state)) {}
  State& state() const;

  std::shared_ptr<State> state_;
};

}  // namespace quantrain
