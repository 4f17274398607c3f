#pragma once

#include <string_view>

#include "framework/autograd/graph.hpp"
#include "layers/module.hpp"
#include "quant/training/qconfig.hpp"

namespace quantrain::quant {

/// Plugs fake quantization into a network's layers, from one recorded pass over an example [N,
/// ...]: on the input, whose range and features are those of the example's codes or, of plain
/// floats, QConfig::input_range; on the weights of each Conv2d and Linear, and after each Conv2d,
/// Linear, Add, AvgPool2d, Concat and elementwise function, or after the batch norm and ReLU that
/// are fused with it. Batch norms are folded into the Conv2d or Linear in front; others get codes
/// of their own.   docs/quantization.md (12), (15), (24) Train afterwards, with an optimizer that
/// is made afterwards (learned scales are new parameters): ranges move in training mode, evaluation
/// moves nothing; before the first step evaluating is an error, unless calibrate(net, batches) came
/// first. The network's mode is left as it was.
/// Throws: GraphError if the network is prepared already, a layer to be quantized runs twice in one
/// pass, an operation that needs a FakeQuantize is not a layer's, or a batch norm is that of a
/// layer other than BatchNorm1d and BatchNorm2d; QuantError if the configuration makes no sense or
/// names unknown layers, nothing says the input's range or two things say different ones, or a sum
/// is longer than kLongestReduction. DataError if an example's floats lie outside of their range.
/// Nothing is plugged in then.
void prepare_qat(Module& net, const Tensor& example, const QConfig& config);
/// The same for a network that takes and gives lists; every input has the range of its example.
void prepare_qat(Module& net, const std::vector<Tensor>& examples, const QConfig& config);

/// The same for quantization without training: calibrate(net, batches) afterwards, then convert.
/// The network is frozen from the start: training it trains the weights at fixed ranges, and
/// set_phase(net, Phase::kTraining) makes the ranges move.
void prepare_ptq(Module& net, const Tensor& example, const QConfig& config);
void prepare_ptq(Module& net, const std::vector<Tensor>& examples, const QConfig& config);

/// Throws: GraphError naming `where` if an example is undefined; ShapeError unless there are some, and
/// all are batches of equally many samples.
void check_examples(std::string_view where, const std::vector<Tensor>& examples);

/// The network's graph over an example, recorded in evaluation mode without gradients.
Graph record_graph(Module& net, const Tensor& example);
Graph record_graph(Module& net, const std::vector<Tensor>& examples);

}  // namespace quantrain::quant
