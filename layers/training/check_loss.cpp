#include "layers/training/check_loss.hpp"

#include <algorithm>
#include <string>

#include "framework/autograd/graph.hpp"
#include "framework/core/error.hpp"

namespace quantrain {
namespace {

bool contains(const std::vector<Tensor>& all, const Tensor& tensor) {
  return std::any_of(all.begin(), all.end(), [&](const Tensor& t) { return t.same_as(tensor); });
}

}  // namespace

void check_loss(const Tensor& loss,
                const Module& net,
                const Optimizer& optimizer,
                const std::vector<NamedState>& also) {
  if (loss.elements() != 1)
    throw ShapeError(
        "fit", "the loss has shape ", loss.shape(), ", expected one number, such as mean(...)");
  const Graph graph(loss);
  const std::vector<Tensor> of_net = net.parameters();
  bool trains_net =
      std::none_of(of_net.begin(), of_net.end(), [](const Tensor& t) { return t.requires_grad(); });
  bool trains = false;
  for (const Tensor& leaf : graph.leaves()) {
    if (!leaf.requires_grad()) continue;
    const bool is_of_net = contains(of_net, leaf);
    const bool is_trained = contains(optimizer.parameters(), leaf);
    trains_net = trains_net || is_of_net;
    trains = trains || is_trained;
    const bool is_known = is_of_net || is_trained || leaf.name().empty() ||
                          std::any_of(also.begin(), also.end(), [&](const NamedState& entry) {
                            return entry.tensor.same_as(leaf);
                          });
    if (is_known) continue;
    const std::vector<int> consumers = graph.consumers(leaf);
    if (consumers.empty()) continue;  // the loss itself
    const GraphNode& node = graph.node(consumers[0]);
    throw DataError(
        "fit",
        "the operation ",
        node.type(),
        node.scope().empty() ? "" : " of layer ",
        node.scope(),
        " uses \"",
        leaf.name(),
        "\" ",
        leaf.shape(),
        ", which requires a gradient, but is a parameter of neither the network nor the optimizer, "
        "so it would never be trained: register its layer by add(name, layer) in the module's "
        "constructor; if it shall stay as it is, use it while a NoGrad lives, or call "
        "set_requires_grad(false) on it; if you train it yourself, list it in FitOptions::also");
  }
  if (!trains_net)
    throw DataError(
        "fit",
        "the loss depends on no parameter of the network: compute it with the network that fit() "
        "gets, outside of NoGrad and Calibration");
  if (!trains)
    throw DataError(
        "fit",
        "the loss depends on none of the optimizer's parameters: make the optimizer from this "
        "network's parameters()");
}

void check_last_batch(const Tensor& loss, int64_t samples, const DataLoader& loader) {
  const LoaderOptions& options = loader.options();
  const int64_t all = loader.samples().value_or(0);
  if (options.drop_last || options.merge_last || samples < 2 || all % options.batch != 1) return;
  const Graph graph(loss);
  for (const GraphNode& node : graph.nodes()) {
    const bool by_batch =
        node.type() == "rescaled_batch_norm" ||
        (node.type() == "batch_norm" && node.node->attributes().integer("training") == 1);
    if (!by_batch) continue;
    const Shape& x = node.inputs[0].shape();
    if (x[0] != samples || x.elements() != samples * x[-1]) continue;
    throw ShapeError("fit",
                     all,
                     " samples in batches of ",
                     options.batch,
                     " leave one sample for the last batch, but the batch norm ",
                     node.scope(),
                     " normalizes ",
                     x,
                     " by the batch's statistics, which need at least two samples: set "
                     "LoaderOptions::drop_last to leave that sample out, or merge_last to add it "
                     "to the batch before");
  }
}

}  // namespace quantrain
