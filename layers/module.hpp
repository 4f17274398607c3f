#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/arithmetic/activation.hpp"
#include "framework/autograd/named_state.hpp"
#include "framework/autograd/node.hpp"
#include "framework/autograd/tensor_access.hpp"
#include "layers/members.hpp"

namespace quantrain {

class Module;
class WeightSlot;

/// Where a layer of one network is in another: its path there, from its path here.
using NewPath = std::function<std::string(const std::string& path)>;

/// How the slots of a prepared network were filled. A prepared root has one; copies and files use
/// it.
class Preparation {
 public:
  virtual ~Preparation();
  /// Fills the slots of `to`, which are empty, as those of `from` are filled; not their state.
  virtual void fill(const Module& from, Module& to, const NewPath& path) const = 0;
  /// The filled slots as JSON; not their state.
  /// Throws: QuantError naming the layer if a slot holds what a file cannot describe.
  virtual std::string describe(const Module& net) const = 0;
};

/// Extension points of a layer. Layers leave them empty and do not know what fills them. quant/
/// fills them with FakeQuantize modules and batch-norm folding.
struct Slots {
  std::vector<std::shared_ptr<Module>> inputs;     ///< one for each input, applied to it
  std::shared_ptr<WeightSlot> weight;              ///< computes the weights that the layer uses
  std::shared_ptr<Module> body;                    ///< runs instead of forward()
  std::shared_ptr<Module> output;                  ///< applied to the first output
  std::shared_ptr<const Preparation> preparation;  ///< of a root whose slots are filled
  /// The weight that fold_normalization() left in this layer. Not part of the state.
  std::vector<float> folded_weight;
};

/// What the shards of a batch left of a module's pass_state(). Each began with the same values.
struct ShardStates {
  std::vector<std::vector<NamedState>> after;  ///< [shard][entry of pass_state()]
  std::vector<int64_t> samples;                ///< [shard]
};

struct NamedModule {
  std::string name;  ///< path from the module that lists it; empty for that module itself
  Module* module;
};

/// Base of everything that has parameters or runs in a network. Parameters are trained; buffers,
/// floats or integers, are state that is saved but not trained. Modules can be moved, not copied.
/// To write a layer, derive from Module, make children with add() and override forward().
class Module {
 public:
  /// Maximum depth of nested modules or calls. Modules that nest deeper, or contain themselves,
  /// throw GraphError when they are listed or run.
  static constexpr int kMostNested = 500;
  /// How many inputs a layer takes, if it does not say otherwise.
  static constexpr InputCount kInputs{};

  Module() = default;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;
  virtual ~Module();

  /// The class name in messages, summaries and QConfig, such as "Conv2d".
  virtual std::string_view type() const = 0;

  /// Runs, inside this module's Scope, the input slot, then the body slot (forward() if there is
  /// none), then the output slot. The body may do the work of the output slot: see fuse(). The path
  /// of the Scope starts at the module of the outermost call, even if that module is part of a
  /// larger network.
  /// Throws: GraphError if x is undefined.
  Tensor operator()(Tensor x);
  /// The same for two inputs, but never runs the body slot.
  Tensor operator()(Tensor a, Tensor b);
  /// The same for any number of inputs and outputs. Runs the body slot only for one input, and
  /// applies the output slot only to the first output.
  std::vector<Tensor> operator()(const std::vector<Tensor>& x);

  /// All parameters (or buffers) of this module, its slots and its children, in this order. Entries
  /// and children come in the order in which they were added. A shared entry is listed once.
  std::vector<NamedState> named_parameters() const;
  std::vector<NamedState> named_buffers() const;
  std::vector<Tensor> parameters() const;
  void zero_grad();

  /// This module and all modules below it, parents before children, without the modules in slots.
  std::vector<NamedModule> named_modules() &;
  std::vector<NamedModule> named_modules() && = delete;
  /// The module at a path.
  /// Throws: GraphError naming the known paths if there is no module at this path.
  Module& find(std::string_view path) &;
  Module& find(std::string_view path) && = delete;

  /// For callers that know what follows this module: replaces x by activation(this module's
  /// result), if the module now computes both in one pass. If it also does what `output` would do
  /// with the result, it sets `output` to null. Else returns false and leaves x and `output` as
  /// they are. Runs no slots.
  virtual bool fuse(Tensor& x, Activation activation, Module*& output);

  /// This module's own state that a training pass changes by itself: its buffers, except constants.
  /// Override it if a pass also changes a parameter.
  virtual std::vector<NamedState> pass_state() const;
  /// Sets pass_state(), which holds the values from before a batch, to what its shards left; called
  /// only if a shard changed an entry. Override it if this is not right for your state:
  ///   floats    the mean of the shards, weighted by their samples, computed in double
  ///   integers  the largest value: what counts passes counts a batch once
  virtual void join_shards(const ShardStates& shards);

  bool training() const { return training_; }
  /// Sets the mode of this module and of all its children and slots.
  void train(bool training = true);
  void eval() { train(false); }
  /// Gives each module the mode that it has in another network of the same layers and slots.
  /// Throws: GraphError if the number of modules differs; then nothing changes.
  void train_like(const Module& other);

  /// Whether forward() takes its weights from slots().weight.
  virtual bool has_weight_slot() const { return false; }
  bool has_children() const { return !children_.empty(); }

  /// Whether one of its slots is filled.
  bool has_filled_slot() const {
    return !slots_.inputs.empty() || slots_.weight || slots_.body || slots_.output;
  }
  Slots& slots() & { return slots_; }
  const Slots& slots() const& { return slots_; }
  const Slots& slots() const&& = delete;
  /// name(), or type() if the name is empty. For messages about a whole network.
  std::string label() const { return name_.empty() ? std::string(type()) : name_; }
  /// Last part of the module's path; empty at the root.
  const std::string& name() const& { return name_; }
  std::string name() const&& { return name_; }

 protected:
  /// The base version throws ShapeError, because the layer does not take that many inputs.
  virtual Tensor forward(const Tensor& x);
  virtual Tensor forward(const Tensor& a, const Tensor& b);
  /// The same for inputs that the caller gives up: if no other handle refers to them, the result
  /// may take their memory. operator() calls these; the base versions call forward(), which a layer
  /// usually overrides.
  virtual Tensor take_forward(Tensor x) { return forward(x); }
  virtual Tensor take_forward(Tensor a, Tensor b) { return forward(a, b); }
  /// The base version passes one or two inputs to the functions above.
  virtual std::vector<Tensor> forward(const std::vector<Tensor>& x);

  /// Adds a child under a name, and returns the child.
  /// Throws: GraphError if the name is taken or empty, contains a dot or is not UTF-8, or if the
  /// child is null.
  template <class M>
  std::shared_ptr<std::decay_t<M>> add(const std::string& name, M&& module) {
    auto child = std::make_shared<std::decay_t<M>>(std::forward<M>(module));
    add_child(name, child);
    return child;
  }
  void add_child(std::string name, std::shared_ptr<Module> child);
  /// Throws: GraphError naming `where`, as add() does for a name.
  static void check_name(std::string_view where, const std::string& name);
  /// Returns the tensor, which now requires a gradient.
  Tensor add_parameter(std::string name, Tensor tensor);
  Tensor add_buffer(std::string name, Tensor tensor);
  IntegerBuffer add_buffer(std::string name, IntegerBuffer integers);
  /// The values of a NamedState::constant are part of the module's definition. Loading a state with
  /// other values is an error, and the message names the entry.
  void add_buffer(NamedState entry);
  const std::vector<std::shared_ptr<Module>>& children() const { return children_; }
  /// Parameters of this module alone.
  const std::vector<NamedState>& own_parameters() const { return parameters_; }
  /// Class and path of the running module, for error messages: "Conv2d block1.conv".
  std::string where() const;
  /// Called after the mode has changed.
  virtual void on_train(bool /*training*/) {}

 private:
  friend class EvaluationMode;
  friend class PassState;
  void check_nesting(int depth) const;
  template <class Visit>
  void visit_owned(const std::string& prefix, const Visit& visit, int depth = 0) const;
  void append_modules(const std::string& name, int depth, std::vector<NamedModule>& all);
  template <class Visit>
  void for_parts(const Visit& visit) const;
  void set_training(bool training, int depth);
  /// Without the modules below.
  void set_own_mode(bool training);
  /// Appends this module and all modules below it, including those in slots, with their modes.
  void append_modes(int depth, std::vector<std::pair<Module*, bool>>& modes);
  /// The part of operator() within the module's Scope.
  Tensor call(Tensor x);
  Tensor call(Tensor a, Tensor b);
  std::vector<Tensor> call(const std::vector<Tensor>& x);
  void give_up(std::shared_ptr<Module>& parts);
  template <class Call>
  auto run(Call&& call);
  Tensor slotted_input(size_t i, Tensor x) const;

  std::string name_;
  bool training_ = true;
  Slots slots_;
  std::vector<std::shared_ptr<Module>> children_;
  std::shared_ptr<Module> next_part_;  // links parts while ~Module() destroys them
  std::vector<NamedState> parameters_;
  std::vector<NamedState> buffers_;
};

/// While it lives, sees every call of a module in this thread: Module::operator() calls enter(),
/// the module, and leave(). Tensors that it keeps cannot be overwritten by the layers that follow.
class CallListener {
 public:
  virtual ~CallListener();
  CallListener(const CallListener&) = delete;
  CallListener& operator=(const CallListener&) = delete;
  /// Within the module's Scope, before it runs.
  virtual void enter(Module& module) = 0;
  /// Within the module's Scope, after it ran. May replace the results.
  virtual void leave(Module& module,
                     const std::vector<Tensor>& inputs,
                     std::vector<Tensor>& outputs) = 0;

  /// The innermost one of this thread, or null.
  static CallListener* current();

 protected:
  CallListener();

 private:
  CallListener* previous_;
};

/// The weight and bias that a convolution or Linear uses; bias may be undefined.
struct Weights {
  Tensor weight;
  Tensor bias;
  /// What the weight slot changed for the batch norm that follows; null if it folds none.
  std::shared_ptr<const Rescaling> rescaling{};
};

/// Computes the weights that a layer uses. Takes the layer's own weights and its input. The layer
/// attaches `rescaling` to its result: TensorAccess::set_rescaling(y, weights.rescaling).
class WeightSlot : public Module {
 public:
  virtual Weights apply(const Weights& own, const Tensor& x) = 0;
};

}  // namespace quantrain
