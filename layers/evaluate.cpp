#include "layers/evaluate.hpp"

#include "framework/autograd/node.hpp"
#include "layers/evaluation_mode.hpp"

namespace quantrain {

Metrics evaluate(Module& net,
                 const DataLoader& batches,
                 const std::vector<std::string>& metrics,
                 const EvaluateOptions& options) {
  const EvaluationMode evaluation(net);
  const NoGrad no_grad;
  return evaluate(
      [&](const Batch& batch) { return net(batch.inputs()); }, batches, metrics, options);
}

std::vector<Tensor> predict_outputs(Module& net, const DataLoader& batches) {
  const EvaluationMode evaluation(net);
  const NoGrad no_grad;
  return predict_outputs([&](const Batch& batch) { return net(batch.inputs()); }, batches);
}

Tensor predict(Module& net, const DataLoader& batches) {
  const EvaluationMode evaluation(net);
  const NoGrad no_grad;
  return predict([&](const Batch& batch) { return net(batch.inputs()); }, batches);
}

}  // namespace quantrain
