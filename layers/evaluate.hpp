#pragma once

#include <string>
#include <vector>

#include "framework/metrics/evaluate.hpp"
#include "layers/module.hpp"

namespace quantrain {

/// Runs a network on the batches of one epoch, in evaluation mode and without gradients, and
/// computes metrics: by default accuracy and cross_entropy of labels, or mae, mse and r2 of
/// numbers. Evaluation lists all names. Afterwards, each module has its mode of before.
///   const Metrics metrics = evaluate(net, DataLoader{test_set}, {"accuracy", "recall"});
///   metrics.at("recall_3");   of class 3
///   evaluate(net, DataLoader{images}, {}, {.ignore_index = 255});   pixels without a label
/// The network gets all inputs of a batch. framework/metrics/evaluate.hpp has the same functions
/// for an integer model.
/// Throws: as Evaluation; what running the network throws; ShapeError if it has several outputs;
/// DataError if there is no batch.
Metrics evaluate(Module& net,
                 const DataLoader& batches,
                 const std::vector<std::string>& metrics = {},
                 const EvaluateOptions& options = {});
/// The output for all samples of one epoch [N, ...], in the order of the batches. For labels,
/// predicted_classes(predict(net, batches)) are the classes.
/// Throws: as above.
Tensor predict(Module& net, const DataLoader& batches);
/// The same for a network with any number of outputs.
std::vector<Tensor> predict_outputs(Module& net, const DataLoader& batches);

}  // namespace quantrain
