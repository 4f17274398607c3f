#pragma once

#include <string>
#include <vector>

#include "framework/integer/integer_model.hpp"
#include "framework/metrics/evaluation.hpp"

// Metrics and outputs of an integer model; layers/evaluate.hpp has the same for a network.
namespace quantrain {

/// Runs an integer model on the batches of one epoch and computes metrics, by default accuracy and
/// cross_entropy of labels, or mae, mse and r2 of numbers. Evaluation lists all names.
///   const Metrics metrics = evaluate(model, DataLoader{test_set}, {"accuracy", "recall"});
///   metrics.at("recall_3");   of class 3
/// Inputs that carry codes are run on these codes. Inputs of plain floats are raw values, which the
/// model encodes. Outputs are real numbers, rounded to float32.
/// Throws: as Evaluation; QuantError if a batch's codes have other parameters or features than the
/// model's; what IntegerModel::run() and quantize_input() throw; ShapeError if the model has
/// several outputs or another number of inputs; DataError if there is no batch.
Metrics evaluate(const IntegerModel& model,
                 const DataLoader& batches,
                 const std::vector<std::string>& metrics = {},
                 const EvaluateOptions& options = {});
/// The output for all samples of one epoch [N, ...], in the order of the batches. For labels,
/// predicted_classes(predict(model, batches)) are the classes.
/// Throws: as above.
Tensor predict(const IntegerModel& model, const DataLoader& batches);
/// The same for a model with any number of outputs.
std::vector<Tensor> predict_outputs(const IntegerModel& model, const DataLoader& batches);

}  // namespace quantrain
