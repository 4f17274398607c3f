#pragma once

#include <map>
#include <string>
#include <vector>

#include "layers/record_graph.hpp"
#include "quant/prepare/prepared_form.hpp"
#include "quant/prepare/qconfig.hpp"

namespace quantrain::quant {

/// Plugs fake quantization into a network's layers. A recorded pass over an example [N, ...] shows
/// where it is needed: at the input, at the weights of each convolution and Linear, and at the
/// output of each convolution, Linear, Add, Mul, average pool, Mean, Concat, Softmax, elementwise
/// function and arithmetic operation with constants, and of a ReLU that is not fused and has an
/// entry in the QConfig. An output is quantized after the batch norm and ReLU that are fused with
/// its operation. The input takes range and features from the example's codes; for plain floats the
/// range is QConfig::input_range. A batch norm is folded into the convolution or Linear that
/// precedes it; any other batch norm gets an output range of its own.
/// docs/quantization.md (12), (15), (24)
/// Train afterwards, with an optimizer made after this call, because learned scales are new
/// parameters. Ranges move in training mode only; the range of a Softmax is [0, 1] and never moves.
/// Evaluation is an error until a training pass or calibrate(net, batches) has set the ranges. The
/// network stays in its mode (training or evaluation).
/// Throws: as check_examples(); GraphError if the network is prepared already or has nothing to
/// quantize, no output depends on the input in the recorded graph, a layer to be quantized runs
/// twice in one pass, an operation has no integer form (whatever ranges and bits are) and its layer
/// is not left in float by LayerConfig::quantize, an operation that needs a FakeQuantize has no
/// layer of its own, or a batch norm belongs to a layer other than BatchNorm1d and BatchNorm2d;
/// QuantError if the configuration is invalid or names unknown layers, the input's range is unknown
/// or contradictory, a quantized weight has no elements, or a sum is longer than
/// longest_reduction(); DataError if an example's floats lie outside of QConfig::input_range. If
/// several operations are refused, the error lists all of them. On an error, nothing is plugged in.
void prepare_qat(Module& net, const Tensor& example, const QConfig& config);
/// The same for a network with several inputs or outputs; each input takes range and features from
/// its own example.
void prepare_qat(Module& net, const std::vector<Tensor>& examples, const QConfig& config);

/// The same for quantization without training: call calibrate(net, batches) afterwards, then
/// convert. The network is frozen from the start: training changes the weights but not the ranges.
/// set_phase(net, Phase::kTraining) lets the ranges move.
/// Throws: also QuantError naming a layer with first_bits, which nothing would lower.
void prepare_ptq(Module& net, const Tensor& example, const QConfig& config);
void prepare_ptq(Module& net, const std::vector<Tensor>& examples, const QConfig& config);

/// Parameters that are known before anything is observed, such as those of a file. They never
/// change.
struct GivenParams {
  std::map<std::string, QParams> outputs{};  ///< by the layer whose output slot gets them
  std::map<std::string, QParams> weights{};  ///< by the layer with the weights
};

/// prepare_qat() with some parameters given. Their types replace those of the configuration. An
/// output layer with weights that has none here gives its accumulators, whatever
/// QConfig::output_bits says. A softmax with given parameters does not have the range [0, 1].
/// Throws: as prepare_qat(); GraphError if a layer that is named has no such slot; QuantError if
/// parameters are not valid. On an error, nothing is plugged in.
void prepare_given(Module& net,
                   const std::vector<Tensor>& examples,
                   QConfig config,
                   const GivenParams& given);

}  // namespace quantrain::quant
