#pragma once

#include <cstdint>
#include <forward_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "framework/arithmetic/qparams.hpp"
#include "framework/autograd/tensor_access.hpp"

namespace quantrain {

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>>;

/// A list of named values that, with type() and inputs(), defines what a node computes. A printed
/// graph shows the list.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Attribute>> entries)
      : entries_(entries) {}

  void add(std::string name, Attribute value);

  /// Throws: GraphError if there is no such attribute or it has another type.
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& string(std::string_view name) const&;
  std::string string(std::string_view name) const&& { return string(name); }
  const std::vector<int64_t>& integers(std::string_view name) const&;
  std::vector<int64_t> integers(std::string_view name) const&& { return integers(name); }

  auto begin() const& { return entries_.begin(); }
  auto end() const& { return entries_.end(); }
  void begin() const&& = delete;
  void end() const&& = delete;
  bool empty() const { return entries_.empty(); }
  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  const Attribute& find(std::string_view name) const;
  std::vector<std::pair<std::string, Attribute>> entries_;
};

/// Prints "stride=[1, 1] groups=1".
std::ostream& operator<<(std::ostream& stream, const Attributes& attributes);

/// Properties of an operation that matter when a network is prepared for quantization and lowered
/// to integers. Each node declares its own.
struct QuantizationTraits {
  /// The result is quantized with its own parameters: a FakeQuantize follows this operation, or the
  /// last operation that is fused with it.
  bool closes_range = false;
  /// Index of the input that is a weight, or -1 if there is none. The next input is the bias.
  int weight = -1;
  /// A batch norm that follows is folded into the weight.   docs/quantization.md (15)
  bool folds_batch_norm = false;
  bool is_batch_norm = false;
  /// If the preceding operation has closes_range set, the two may be fused. This operation then
  /// becomes a clamp of codes.   docs/quantization.md (9)
  bool is_activation = false;
  /// The result holds the same elements in another shape.
  bool is_view = false;
  /// Whether an operand may be a constant: a tensor that does not depend on the network's input,
  /// such as PReLU's slopes. The integer form is then a function for each channel, which contains
  /// the constant's values.
  bool takes_constants = false;
  /// Whether the operation has an integer form if all operands except weights depend on the
  /// network's input; false for an operation that has none at all. If neither takes_constants nor
  /// takes_data allows the operands, prepare_qat and prepare_ptq refuse the operation, and
  /// refuse_integers() says why.
  bool takes_data = true;
  /// A range that contains every result. A FakeQuantize that follows gets fixed parameters for this
  /// range.
  std::optional<Range> range{};
  /// The layer that error messages recommend instead of the bare operation. The messages do not
  /// recommend it if takes_data is set and an operand other than weight and bias is a constant.
  std::string_view layer{};
};

/// One recorded operation. A derived class owns the data that its gradient needs. See
/// docs/adding_an_operation.md.
class Node {
 public:
  Node();
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// The operation's name in snake_case: "conv2d". It is the key of tables, such as the table of
  /// lowering rules.
  virtual std::string_view type() const = 0;
  virtual Attributes attributes() const { return {}; }
  /// Gradient of each input, in order, given the gradient of the output. Entry i may be undefined
  /// if needs_grad(i) is false. Called once unless the graph is kept. Other handles may share
  /// grad_y, so write only to TensorAccess::overwritable(grad_y).
  virtual std::vector<Tensor> backward(Tensor grad_y) = 0;
  /// Whether backward reads the value of input i, from the input or from a member that shares its
  /// memory. If not, the node need not keep the value alive, and users may overwrite it.
  virtual bool reads_input(size_t i) const {
    (void)i;
    return true;
  }

  virtual QuantizationTraits traits() const { return {}; }
  /// Called if the operation cannot be quantized or lowered. Throws an error that names the layer
  /// and the operation. An override also says why the operation has no integer form.
  /// Throws: always, GraphError or QuantError.
  [[noreturn]] virtual void refuse_integers(const std::string& layer) const;

  /// Throws: GraphError if a backward pass has freed the inputs. input() throws it, too.
  const std::vector<Tensor>& inputs() const {
    if (released_) refuse_released();
    return inputs_.front();
  }
  const Tensor& input(size_t i) const { return inputs()[i]; }
  /// Whether input i required a gradient when this node was recorded.
  /// Throws: GraphError if a backward pass has freed the inputs.
  bool needs_grad(size_t i) const {
    if (released_) refuse_released();
    return uses_[i].needs_grad;
  }
  /// Path of the layer that was running: "block1.conv"; empty outside of layers.
  const std::string& scope() const { return scope_; }
  /// Position in the order of recording.
  uint64_t sequence() const { return sequence_; }
  /// Whether a backward pass has freed the node's inputs.
  bool released() const { return released_; }

 private:
  friend void attach(Tensor& y, std::shared_ptr<Node> node, std::vector<Tensor> inputs);
  friend class BackwardPass;
  [[noreturn]] void refuse_released() const;

  std::forward_list<std::vector<Tensor>> inputs_{{}};  // always a single list; see ~Node
  // State of an input when the node was recorded.
  struct Use {
    uint64_t version;
    bool needs_grad;
  };
  std::vector<Use> uses_;
  uint64_t result_version_ = 0;  // version of the result when it was recorded
  std::string scope_;
  uint64_t sequence_;
  bool released_ = false;
  Tensor grad_y_;  // gradient of the result, summed so far in the running pass
};

/// During the lifetime of a NoGrad, no result that this thread computes requires a gradient.
class NoGrad {
 public:
  [[nodiscard]] NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;
};

/// During the lifetime of a Recording, every operation of this thread is recorded, including those
/// that need no gradient.
class Recording {
 public:
  [[nodiscard]] Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
};

/// During the lifetime of a Scope, every node that this thread records carries the layer's name,
/// appended to the path of the enclosing scope.
class Scope {
 public:
  [[nodiscard]] explicit Scope(std::string_view name);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// "outer.inner", or empty.
  static const std::string& path();

 private:
  size_t previous_length_;
};

/// Whether some input requires a gradient and no NoGrad is alive. Only then does an operation save
/// anything for backward.
bool needs_gradient(const std::vector<Tensor>& inputs);
/// Whether a Recording is alive: recorded nodes keep the values of all their inputs.
bool keeps_values();
/// Whether needs_gradient(inputs), or a Recording is alive.
bool should_record(const std::vector<Tensor>& inputs);
[[noreturn]] void refuse_own_result(const Node& node);
/// Makes y the recorded result of the node.
void attach(Tensor& y, std::shared_ptr<Node> node, std::vector<Tensor> inputs);

/// If should_record(inputs), records y as the result of NodeType(args...) on the inputs. This call
/// is the last line of every operation.
/// Throws: GraphError if the node keeps y. As y will own the node, neither would ever be freed. The
/// node may keep y.detach().
template <class NodeType, class... Args>
Tensor record(Tensor y, std::vector<Tensor> inputs, Args&&... args) {
  if (should_record(inputs)) {
    const long handles = TensorAccess::handles(y);
    auto node = std::make_shared<NodeType>(std::forward<Args>(args)...);
    if (TensorAccess::handles(y) > handles) refuse_own_result(*node);
    attach(y, std::move(node), std::move(inputs));
  }
  return y;
}

}  // namespace quantrain
