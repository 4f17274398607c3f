#include <queue>

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"

namespace quantrain {
namespace {

struct EarlierFirst {
  bool operator()(const std::shared_ptr<Node>& a, const std::shared_ptr<Node>& b) const {
    return a->sequence() < b->sequence();
  }
};

Tensor sum(const Tensor& a, const Tensor& b) {
  Tensor y = Tensor::empty(a.shape());
  float* const out = y.mutable_data();
  const float* const x = a.data();
  const float* const z = b.data();
  for (int64_t i = 0; i < y.elements(); ++i) out[i] = x[i] + z[i];
  return y;
}

}  // namespace

/// Nodes are visited from the last recorded to the first: every consumer of a value comes before
/// its maker, and the order in which gradients are summed is that of recording.
class BackwardPass {
 public:
  explicit BackwardPass(bool keep_graph) : keep_graph_(keep_graph) {}

  void run(const Tensor& root) {
    deliver(root, Tensor::full(root.shape(), 1.0f));
    while (!queue_.empty()) {
      const std::shared_ptr<Node> node = queue_.top();
      queue_.pop();
      visit(*node);
    }
  }

  static void check(const Node& node) {
    if (node.released_) {
      throw GraphError(node.type(),
                       "the graph was freed by an earlier backward pass; keep it with keep_graph");
    }
    for (size_t i = 0; i < node.inputs_.size(); ++i) {
      if (node.inputs_[i].defined() && node.inputs_[i].version() != node.versions_[i]) {
        throw GraphError(node.type(), "input ", i, " was written after it was used");
      }
    }
  }

 private:
  void visit(Node& node) {
    check(node);
    const Tensor grad_y = std::exchange(node.grad_y_, Tensor());
    const std::vector<Tensor> grads = node.backward(grad_y);
    if (grads.size() != node.inputs_.size()) {
      throw GraphError(node.type(),
                       "backward gave ",
                       grads.size(),
                       " gradients for ",
                       node.inputs_.size(),
                       " inputs");
    }
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!node.needs_grad(i)) continue;
      if (!grads[i].defined())
        throw GraphError(node.type(), "backward gave no gradient for input ", i);
      if (!(grads[i].shape() == node.inputs_[i].shape())) {
        throw ShapeError(node.type(),
                         "gradient of input ",
                         i,
                         " has shape ",
                         grads[i].shape(),
                         ", the input ",
                         node.inputs_[i].shape());
      }
      deliver(node.inputs_[i], grads[i]);
    }
    if (!keep_graph_) {
      node.inputs_.clear();
      node.versions_.clear();
      node.released_ = true;
    }
  }

  void deliver(const Tensor& tensor, const Tensor& grad) {
    if (Node* const node = tensor.node().get()) {
      if (node->grad_y_.defined()) {
        node->grad_y_ = sum(node->grad_y_, grad);
      } else {
        node->grad_y_ = grad;
        queue_.push(tensor.node());
      }
      return;
    }
    Tensor leaf = tensor;
    leaf.set_grad(leaf.grad().defined() ? sum(leaf.grad(), grad) : grad);
  }

  bool keep_graph_;
  std::priority_queue<std::shared_ptr<Node>, std::vector<std::shared_ptr<Node>>, EarlierFirst>
      queue_;
};

void Tensor::backward(bool keep_graph) {
  if (elements() != 1) throw ShapeError("backward", "needs a single element, got shape ", shape());
  if (!requires_grad() || node() == nullptr)
    throw GraphError("backward", "nothing was recorded that requires a gradient");
  BackwardPass(keep_graph).run(*this);
}

}  // namespace quantrain
