#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "framework/autograd/named_state.hpp"
#include "framework/autograd/tensor_access.hpp"

namespace quantrain {

/// Checks that these tensors can be updated in place: each is defined, holds floats, is not the
/// result of an operation and is listed once.
/// Throws: DataError naming `where`, `what` ("parameter"), the tensor's index and its name.
void check_leaves(const std::string& where, const char* what, const std::vector<Tensor>& tensors);

/// Base class of optimizers, which update parameters from their gradients. A parameter without a
/// gradient stays unchanged, and so does its state. One step with a NaN or infinite gradient would
/// make weights NaN or infinite, too. So such a gradient is an error, unless the options allow it.
/// Some parameters have a domain: the scales of quant::Estimator::kLearned are positive. step()
/// puts a value that update() left below its least value back to it (projected gradient descent).
/// For gradient accumulation, split a batch into k parts. Between zero_grad() and step(), run
/// backward() on 1 / k times the loss of each part. backward() adds to the existing gradients.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates each parameter that has a gradient. A gradient has the shape of its parameter.
  /// Throws: DataError naming parameters that have a gradient but were added after the optimizer
  /// was made (for example learned scales, if the network was prepared later), or a parameter
  /// whose gradient is NaN, infinite or, for Adam and RmsProp, so large that its square is
  /// infinite; DataError also if no parameter has a gradient in the first step, or if the state,
  /// which may come from a file, is invalid. If it throws, nothing has changed.
  void step();
  /// Drops all gradients.
  void zero_grad();

  float learning_rate() const { return learning_rate_; }
  /// Throws: DataError if the rate is negative or not finite. 0 is allowed, because a schedule may
  /// end at 0.
  void set_learning_rate(float learning_rate);

  const std::vector<Tensor>& parameters() const& { return parameters_; }
  std::vector<Tensor> parameters() && { return std::move(parameters_); }
  /// The optimizer's state, with the names "<index of the parameter>.<what>". The entries are
  /// handles on the state itself, so that save_parameters and load_parameters store and restore it.
  std::vector<NamedState> state() const;

 protected:
  /// Throws: DataError if there are no parameters; if a parameter is listed twice, is undefined,
  /// holds no floats, is the result of an operation or requires no gradient; or if the learning
  /// rate is not positive and finite.
  /// largest_gradient: step() refuses gradients beyond +-largest_gradient, without weight decay.
  /// allow_nonfinite: step() checks neither this nor whether gradients are finite.
  Optimizer(std::string name,
            std::vector<Tensor> parameters,
            float learning_rate,
            bool allow_nonfinite = false,
            float largest_gradient = std::numeric_limits<float>::max());
  /// The largest float32 whose square is finite.
  static constexpr float kLargestWithFiniteSquare = 0x1.fffffep63f;

  /// Throws: DataError unless low <= value < high. If high is infinity, this refuses infinite
  /// values.
  void check_option(const char* option, float value, float low, float high) const;
  /// Adds a tensor of zeros of this shape to the state of parameter i. Values that are loaded into
  /// the tensor must be finite and at least `least`.
  Tensor add_state(size_t i,
                   const char* what,
                   const Shape& shape,
                   float least = std::numeric_limits<float>::lowest());
  /// Adds a count, at first 0, to the state of parameter i.
  IntegerBuffer add_count(size_t i, const char* what);

  virtual void update(size_t i, Tensor& parameter, const Tensor& grad) = 0;
  /// Updates elements [begin, end) of a parameter; begin is a multiple of 16.
  using Part = std::function<void(int64_t begin, int64_t end)>;
  /// For update(): leaves n elements to step(). It calls `part` after the last update(), from
  /// several threads, in one loop over the elements of all parameters. So many small parameters
  /// cost little more than a large one. An update() that changes values in `part` alone lets
  /// step() change all of them, or none if memory runs out.
  void update_later(int64_t n, Part part);

  const std::string& name() const& { return name_; }
  /// Describes parameter i for messages: `parameter 4 "4.weight" [10, 64]`.
  std::string describe(size_t i) const;

 private:
  /// The elements of several parameters, one after the other, in one loop.
  class Parts {
   public:
    void add(int64_t n, Part part);
    /// Calls each part for all of its elements, in blocks of about `grain` elements, and forgets
    /// the parts.
    void run(int64_t grain);

   private:
    struct Entry {
      int64_t first, n;
      Part part;
    };
    std::vector<Entry> entries_;
    int64_t size_ = 0;
  };

  void check_complete() const;
  bool gradients_fit() const;
  void check_gradient(size_t i) const;
  void keep_in_domain(size_t i);

  std::string name_;
  std::vector<Tensor> parameters_;
  float learning_rate_;
  bool allow_nonfinite_;
  bool has_stepped_ = false;
  float largest_gradient_;
  // What TensorAccess::companions() returned for each parameter when the optimizer was made.
  std::vector<TensorAccess::Companions> companions_;
  struct State {
    NamedState entry;
    size_t parameter;
    // Of floats: their minimum, and the last version that step() has written or checked.
    float least = 0.0f;
    uint64_t version = 0;
  };
  void check_loaded(State& state) const;

  std::vector<State> state_;
  Parts later_;
};

}  // namespace quantrain
