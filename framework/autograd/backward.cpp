#include <algorithm>
#include <queue>
#include <unordered_map>

#include "framework/autograd/node.hpp"
#include "framework/autograd/profile.hpp"
#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/kernels/float/elementwise.hpp"

namespace quantrain {
namespace {

struct EarlierFirst {
  bool operator()(const std::shared_ptr<Node>& a, const std::shared_ptr<Node>& b) const {
    return a->sequence() < b->sequence();
  }
};

// Overwrites a or b if nobody else holds it.
Tensor sum(const Tensor& a, const Tensor& b) {
  Tensor y = TensorAccess::overwritable(TensorAccess::is_sole(a) ? a : b);
  const Floats a_floats = a.floats();
  const Floats b_floats = b.floats();
  kernels::add_f32(y.elements(), a_floats, b_floats, y.mutable_data());
  return y;
}

// Returns a tensor with the values of grad. Nothing else shares the tensor's memory, because users
// may write to the gradient of a leaf.
Tensor own(const Tensor& grad) {
  Tensor y = TensorAccess::overwritable(grad);
  if (y.same_as(grad)) return y;
  const Floats values = grad.floats();
  std::copy_n(values.data(), y.elements(), y.mutable_data());
  return y;
}

}  // namespace

/// Visits nodes from the last recorded to the first. Every consumer of a value then comes before
/// its producer, and the order of recording fixes the order in which gradients are summed.
class BackwardPass {
 public:
  /// Checks the whole graph first, so that an error found here leaves all gradients as they were.
  BackwardPass(const Tensor& root, bool keep_graph, const TensorAccess::OnFinal* on_final = nullptr)
      : keep_graph_(keep_graph), on_final_(on_final) {
    std::priority_queue<std::shared_ptr<Node>, std::vector<std::shared_ptr<Node>>, EarlierFirst>
        queue;
    const auto push = [&](const Tensor& tensor) {
      if (tensor.node() == nullptr) return;
      check_result(tensor);
      queue.push(tensor.node());
    };
    push(root);
    while (!queue.empty()) {
      const std::shared_ptr<Node> node = queue.top();
      queue.pop();
      if (!order_.empty() && order_.back() == node) continue;  // another consumer pushed it too
      check(*node);
      order_.push_back(node);
      for (size_t i = 0; i < node->inputs().size(); ++i) {
        if (!node->needs_grad(i)) continue;
        push(node->input(i));
        if (on_final_ != nullptr && node->input(i).node() == nullptr)
          ++uses_[TensorAccess::identity(node->input(i))];
      }
    }
  }

  void run(const Tensor& root) {
    deliver(root, Tensor::full(root.shape(), 1.0f));
    size_t next = 0;
    try {
      while (next < order_.size()) {
        const std::shared_ptr<Node> node = std::move(order_[next++]);  // freed after its visit
        visit(*node);
      }
    } catch (...) {
      for (; next < order_.size(); ++next) order_[next]->grad_y_ = Tensor();
      throw;
    }
  }

 private:
  static void check(const Node& node) {
    if (node.released_) {
      throw GraphError(node.type(),
                       "an earlier backward pass has freed the graph; backward(true) keeps it");
    }
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const bool reads = node.input(i).defined() && node.reads_input(i);
      if (reads && node.input(i).version() != node.uses_[i].version) {
        throw GraphError(node.type(),
                         "input ",
                         i,
                         " was written after it was used: write after backward(), or to a copy");
      }
    }
  }

  // The tensor's node may have saved its result for backward. The saved result and the tensor share
  // their memory.
  static void check_result(const Tensor& tensor) {
    if (tensor.version() != tensor.node()->result_version_) {
      throw GraphError(
          tensor.node()->type(),
          "its result was written after it was recorded: write after backward(), or to a copy");
    }
  }

  void visit(Node& node) {
    std::vector<Tensor> grads = node.backward(std::exchange(node.grad_y_, Tensor()));
    if (grads.size() != node.inputs().size()) {
      throw GraphError(node.type(),
                       "backward gave ",
                       grads.size(),
                       " gradients for ",
                       node.inputs().size(),
                       " inputs");
    }
    std::vector<Tensor> ended;
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!node.needs_grad(i)) continue;
      if (!grads[i].defined())
        throw GraphError(node.type(), "backward gave no gradient for input ", i);
      if (!(grads[i].shape() == node.input(i).shape())) {
        throw ShapeError(node.type(),
                         "gradient of input ",
                         i,
                         " has shape ",
                         grads[i].shape(),
                         ", the input ",
                         node.input(i).shape());
      }
      deliver(node.input(i), std::move(grads[i]));
      if (on_final_ != nullptr && node.input(i).node() == nullptr &&
          --uses_[TensorAccess::identity(node.input(i))] == 0)
        ended.push_back(node.input(i));
    }
    if (!keep_graph_) {
      node.inputs_.front().clear();
      node.uses_.clear();
      node.released_ = true;
    }
    Profile::mark(node.type(), " backward");
    for (Tensor& leaf : ended) (*on_final_)(leaf);
  }

  void deliver(const Tensor& tensor, Tensor grad) {
    if (Node* const node = tensor.node().get()) {
      node->grad_y_ = node->grad_y_.defined() ? sum(node->grad_y_, grad) : std::move(grad);
      return;
    }
    if (!tensor.requires_grad()) return;  // the leaf was frozen after recording
    Tensor leaf = tensor;
    leaf.set_grad(leaf.grad().defined() ? sum(leaf.grad(), grad) : own(grad));
  }

  bool keep_graph_;
  const TensorAccess::OnFinal* on_final_;
  std::unordered_map<const void*, int64_t> uses_;  // of leaves, that are still to be visited
  std::vector<std::shared_ptr<Node>> order_;       // from the last recorded to the first
};

namespace {

void check_root(const Tensor& y) {
  if (y.elements() != 1)
    throw ShapeError("backward", "needs a single element, got shape ", y.shape());
  if (!y.requires_grad() || y.node() == nullptr)
    throw GraphError("backward",
                     "nothing was recorded that requires a gradient: compute the value from a "
                     "network's parameters, or from a leaf after set_requires_grad(true), and "
                     "outside of NoGrad and Calibration");
}

}  // namespace

void Tensor::backward(bool keep_graph) {
  const DefaultRounding rounding;
  check_root(*this);
  BackwardPass(*this, keep_graph).run(*this);
}

void TensorAccess::backward(const Tensor& y, const OnFinal& on_final) {
  const DefaultRounding rounding;
  check_root(y);
  BackwardPass(y, false, &on_final).run(y);
}

}  // namespace quantrain
