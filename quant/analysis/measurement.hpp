#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "framework/autograd/graph.hpp"
#include "framework/data/batch.hpp"
#include "framework/integer/integer_model.hpp"
#include "quant/analysis/diagnose.hpp"
#include "quant/analysis/tally.hpp"
#include "quant/analysis/target_errors.hpp"
#include "quant/lowering/lowering.hpp"
#include "quant/prepare/phase.hpp"

namespace quantrain::quant {

/// The weights of a product whose node in a deployed pass is `node`: what quantization costs them.
/// in_float: the weight and bias that the layer owns. Sets everything but bias_share.
WeightsDiagnosis diagnose_weights(Module& layer, const GraphNode& node, const Weights& in_float);

/// Collects a Diagnosis, without its findings, batch by batch.
class Measurement {
 public:
  /// Throws: as diagnose().
  Measurement(Module& net, const DiagnoseOptions& options);

  /// Whether no more samples are wanted.
  bool full() const { return result_.samples >= options_.samples; }
  void add(const Batch& batch);
  Diagnosis finish();

 private:
  struct Row {
    Row(const std::string& name, int64_t channels) : tally(name, channels) {}
    LayerDiagnosis layer;
    Tally tally;
    std::vector<Phased*> slots;
    int product = -1;         // node of the product in a deployed pass
    std::vector<float> kept;  // rows of an input, for its percentiles
    SignalNoise alone;
    std::vector<SignalNoise> at_outputs;  // the noise of this layer alone
    std::vector<double> output_noise;     // the same for each channel of all outputs, as squares
  };
  struct Part {
    std::vector<Tensor> inputs;
    std::span<const int32_t> labels;
    std::vector<Tensor> targets;
  };

  void start(const Graph& deployed, const Graph& floats, const Lowered& lowered);
  Row make_row(const Graph& deployed, const Lowered& lowered, size_t value) const;
  void add(const Part& part);
  void keep_rows(Row& row, const Tensor& input) const;
  void add_alone(const Part& part);
  /// A float pass with each value of an input that carries codes moved by up to half a step.
  Graph moved_input(std::vector<Tensor> inputs, size_t position, const QParams& params);
  void keep_outputs(const Graph& floats);
  void add_output_noise(Row& row, const Graph& floats, const Graph& alone) const;
  double output_error(const Row& row) const;
  void add_integers(const Graph& deployed, const Lowered& lowered, std::vector<Tensor>& outputs);
  void add_classes(const Part& part, const Tensor& floats, const Tensor& sim, const Tensor& ints);
  void add_targets(const Part& part,
                   const Graph& deployed,
                   const Lowered& lowered,
                   const Graph& floats,
                   const std::vector<Tensor>& integers);
  void add_worst(const Part& part, const Tensor& floats, const Tensor& integers);

  Module& net_;
  DiagnoseOptions options_;
  Diagnosis result_;
  std::optional<IntegerModel> model_;
  std::vector<Row> rows_;
  std::vector<int> output_rows_;
  std::vector<TargetErrors> target_errors_;        // of each output
  std::vector<std::vector<float>> alone_outputs_;  // float values of each channel of all outputs
  int64_t alone_ = 0;                              // samples
};

}  // namespace quantrain::quant
