#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "framework/autograd/named_tensor.hpp"
#include "framework/autograd/tensor_access.hpp"

namespace quantrain {

/// That these can be updated in place: each is defined, holds floats, is no result of an operation
/// and is there once. Throws: DataError naming `where`, `what` ("parameter"), its number and name.
void check_leaves(const std::string& where, const char* what, const std::vector<Tensor>& tensors);

/// Base of what changes parameters by their gradients. A parameter without a gradient is left
/// alone, its state too. A gradient that is NaN or infinite is an error, unless the options allow
/// it: one step on it would leave weights that nothing mends.
/// Gradient accumulation needs nothing more: backward() adds to the gradients that are there.
/// Between zero_grad() and step(), run it on the loss of each of k parts of a batch, times 1 / k.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update of every parameter that has a gradient; gradients are as their tensors are shaped.
  /// Throws: DataError naming the parameters that have a gradient and came after the optimizer: a
  /// learned scale of a network that was prepared meanwhile; the parameter whose gradient is NaN or
  /// infinite, or if the state, loaded from a file perhaps, makes no sense. Nothing is changed
  /// then.
  void step();
  /// Drops all gradients.
  void zero_grad();

  float learning_rate() const { return learning_rate_; }
  /// Throws: DataError if it is negative or not finite; 0, where a schedule may end, is allowed.
  void set_learning_rate(float learning_rate);

  const std::vector<Tensor>& parameters() const& { return parameters_; }
  std::vector<Tensor> parameters() && { return std::move(parameters_); }
  /// What the optimizer remembers, as "<index of the parameter>.<what>": handles on the state
  /// itself, so that save_parameters and load_parameters store and restore it.
  std::vector<NamedTensor> state() const;

 protected:
  /// Throws: DataError if there are no parameters, one is listed twice, is undefined, holds no
  /// floats, is the result of an operation or requires no gradient, or the learning rate is not
  /// positive and finite.
  /// allow_nonfinite: step() takes gradients as they are.
  Optimizer(std::string name,
            std::vector<Tensor> parameters,
            float learning_rate,
            bool allow_nonfinite = false);

  /// Throws: DataError unless low <= value and value < high (value < infinity included).
  void check_option(const char* option, float value, float low, float high) const;
  /// Adds zeros of this shape to the state of parameter i. What is loaded into it must be finite
  /// and at least `least`.
  Tensor add_state(size_t i,
                   const char* what,
                   const Shape& shape,
                   float least = std::numeric_limits<float>::lowest());

  /// Throws: DataError if the state of parameter i makes no sense in another way; before anything
  /// is changed.
  virtual void check_state(size_t) const {}
  virtual void update(size_t i, Tensor& parameter, const Tensor& grad) = 0;

  const std::string& name() const& { return name_; }
  /// Of parameter i, for messages: `parameter 4 "4.weight" [10, 64]`.
  std::string describe(size_t i) const;

 private:
  void check_complete() const;
  void check_gradient(size_t i) const;

  std::string name_;
  std::vector<Tensor> parameters_;
  float learning_rate_;
  bool allow_nonfinite_;
  std::vector<TensorAccess::Companions> companions_;  // of each parameter, when this was made
  struct State {
    NamedTensor entry;
    size_t parameter;
    float least;
    uint64_t version;  // that step() left, or found in order
  };
  void check_loaded(State& state) const;

  std::vector<State> state_;
};

}  // namespace quantrain
