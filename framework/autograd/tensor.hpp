#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "framework/autograd/value.hpp"

namespace quantrain {

class Node;

/// A tensor's floats for reading: the tensor's own memory if it holds floats, else floats computed
/// from its codes or waiting result. Keeps this memory alive. data() works only on a named
/// variable, so that the pointer cannot dangle:
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

/// A cheap handle on a value, its gradient and the node that computed it; copies share all three. A
/// value is float32, codes or a waiting result (ValueKind), dense and row-major. Images have shape
/// [N, H, W, C]. tensor_access.hpp has more functions, for operations and for the library itself.
class Tensor {
 public:
  /// An undefined tensor has no value. It stands for an absent operand, such as a bias.
  Tensor() = default;

  /// Uninitialised floats.
  static Tensor empty(const Shape& shape);
  static Tensor zeros(const Shape& shape);
  static Tensor full(const Shape& shape, float value);
  /// Throws: ShapeError if the number of values does not match the shape.
  static Tensor from(const Shape& shape, std::span<const float> values);
  /// Throws: ShapeError if the number of codes, or the number of scales along params.axis, does not
  /// match the shape; QuantError if the codes' parameters are invalid.
  static Tensor from_codes(const Shape& shape, std::shared_ptr<const Codes> codes);
  /// Floats that carry the codes from which they are computed, such as a batch of images. The first
  /// read dequantizes the codes, in the thread that reads; several threads may read at once.
  /// Operations read the floats. The input of a prepared network (quant::InputQuantize) reads the
  /// codes.
  /// Throws: like from_codes(); QuantError unless the codes are stored as kU8 with one scale, or if
  /// codes->features are invalid, or their number is not the shape's last extent.
  static Tensor decoded(const Shape& shape, std::shared_ptr<const Codes> codes);

  bool defined() const { return state_ != nullptr; }
  const Shape& shape() const&;
  Shape shape() const&&;
  int rank() const { return shape().rank(); }
  int64_t dim(int axis) const { return shape()[axis]; }
  int64_t elements() const { return shape().elements(); }

  ValueKind kind() const;
  /// Floats for reading. Floats of codes and waiting results are computed at each call, unless
  /// data() has cached them.
  /// Throws: GraphError if the tensor is undefined, or the value was freed.
  Floats floats() const;
  /// Floats for reading, valid as long as the tensor. Floats of codes and waiting results are
  /// computed at the first call and cached.
  const float* data() const&;
  /// The same for a temporary tensor, where a pointer would dangle. The result keeps the memory
  /// alive, so net(x).data()[0] is valid.
  Floats data() const&& { return floats(); }
  /// Floats for writing; increments version(). Throws: GraphError unless the tensor holds floats.
  float* mutable_data() &;
  float* mutable_data() && = delete;
  /// The only element. Throws: ShapeError if there is not exactly one.
  float item() const;
  /// Throws: GraphError if kind() is not kCodes, or the value was freed.
  const std::shared_ptr<const Codes>& codes() const&;
  std::shared_ptr<const Codes> codes() const&& { return codes(); }
  /// The codes that decoded() got. Null if there are none, or if the floats have since been written
  /// through any tensor that shares them.
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
  void set_grad(Tensor grad);  ///< undefined clears it; ShapeError if the shape differs
  void zero_grad() { set_grad(Tensor()); }

  /// Accumulates d(this)/d(leaf) into the gradient of every leaf that requires a gradient now and
  /// required one when it was used. The order of summation is fixed. The pass is a loop, so deep
  /// graphs do not overflow the stack. A gradient shares its memory with nothing else. Frees the
  /// graph unless keep_graph is set.
  /// Throws, before any gradient has changed: ShapeError unless this is a single element;
  /// GraphError if nothing was recorded that requires a gradient, if the graph was freed, if a
  /// result was written after it was recorded, or if an input that a node's backward() reads was
  /// written after the node used it.
  void backward(bool keep_graph = false);

  /// The same value, without history and gradient.
  Tensor detach() const;
  /// Name of a parameter or input in dumps of the graph.
  const std::string& name() const&;
  std::string name() const&& { return name(); }
  Tensor& set_name(std::string name) &;
  Tensor set_name(std::string name) && { return set_name(std::move(name)); }

  /// The recorded operation that computed this tensor; null if there is none.
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
