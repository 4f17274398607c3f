#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "quant/integer/integer_layer.hpp"

namespace quantrain::quant {

/// A network of integer layers: what convert() makes and a device runs. Const: run it from as many
/// threads as you like. Inputs are samples [n, ...] one after the other, row-major; images are [H,
/// W, C].
class IntegerModel {
 public:
  /// One step, and the values that it reads and writes by their ids.
  struct Layer {
    std::shared_ptr<const IntegerLayer> layer;
    std::vector<int> inputs;  ///< 0 is the network's input
    int output = 0;
    int node = 0;  ///< index in the recorded graph of what holds the same codes, or accumulators
  };
  struct Parts {
    Shape input_shape;  ///< of one sample
    QParams input_params;
    int input_node = 0;  ///< index in the recorded graph of its FakeQuantize
    std::vector<Layer> layers;
    int output = 0;  ///< id of the result
  };

  /// From layers in the order of their running; the last one's result is the output. Throws:
  /// GraphError if a layer reads what no earlier one wrote, shapes do not follow each other, or
  /// another layer than the last gives accumulators; QuantError if the output has more than one
  /// scale; ShapeError if a value has more than 2^30 elements.
  explicit IntegerModel(Parts parts);

  const Shape& input_shape() const { return input_shape_; }
  const QParams& input_params() const { return input_params_; }
  /// Position in the recorded graph of the input's FakeQuantize, for verify_parity.
  int input_node() const { return input_node_; }
  /// Logits of one sample.
  int64_t outputs() const { return outputs_; }
  /// A logit's real value = logit_scale() * integer.
  double logit_scale() const { return logit_scale_; }
  const std::vector<Layer>& layers() const { return layers_; }
  int64_t size_bytes() const;

  /// Integer logits [n, outputs()]: the output layer's accumulators, or its codes less their zero
  /// point. x: codes of the input [n, ...], one byte each; a pixel's byte is its code where the
  /// input range is 0 to 1. Takes no memory but from the pool, which keeps it from call to call.
  /// Throws: ShapeError if n is negative.
  void run(int64_t n, const uint8_t* x, int32_t* logits) const;
  /// The same from real values. Throws: DataError if one is NaN or infinite.
  void run(int64_t n, const float* x, int32_t* logits) const;
  /// Dequantized logits.
  void run(int64_t n, const uint8_t* x, float* logits) const;
  void run(int64_t n, const float* x, float* logits) const;
  /// Index of the largest logit of each sample, the lowest among equals.   docs/quantization.md
  /// (12)
  void classify(int64_t n, const uint8_t* x, int32_t* classes) const;
  void classify(int64_t n, const float* x, int32_t* classes) const;

  /// Real values to codes of the input. Throws: DataError if one is NaN or infinite.
  void quantize_input(int64_t n, const float* x, uint8_t* codes) const;

  /// Called with the position of a layer and what it has just computed for n samples: codes, or
  /// int32 accumulators.
  using Visitor = std::function<void(size_t layer, const void* output)>;
  /// run() that shows every intermediate result. n is at most kChunk.
  void trace(int64_t n, const uint8_t* x, const Visitor& visit) const;

  /// Samples that are run together; more are cut into chunks of this size.
  static constexpr int64_t kChunk = 256;

  /// A safetensors file: integers, scales, and in its metadata the network as JSON. Written whole
  /// or not at all.
  /// Throws: DataError if it cannot be written.
  void save(const std::string& path) const;
  /// Throws: DataError if the file cannot be read, is no integer model, is of another version or
  /// layout, or lacks something; QuantError, ShapeError or GraphError if what it says makes no
  /// sense.
  static IntegerModel load(const std::string& path);

 private:
  void plan_memory();
  void run_chunk(
      int64_t n, const uint8_t* x, int32_t* logits, uint8_t* memory, const Visitor* visit) const;
  template <class Input, class Output>
  void run_chunks(int64_t n, const Input* x, Output* y) const;

  Shape input_shape_;
  QParams input_params_;
  std::vector<Layer> layers_;
  int input_node_ = 0;
  int output_ = 0;
  int64_t outputs_ = 0;
  double logit_scale_ = 1.0;
  int32_t logit_zero_ = 0;
  std::vector<size_t> roots_;     // of each value: the one whose bytes it is, through views
  std::vector<int64_t> offsets_;  // of each value in the memory of a chunk, for one sample
  int64_t sample_bytes_ = 0;      // of that memory
};

}  // namespace quantrain::quant
