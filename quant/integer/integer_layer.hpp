#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "framework/arithmetic/activation.hpp"
#include "framework/arithmetic/qparams.hpp"
#include "framework/autograd/node.hpp"
#include "framework/core/shape.hpp"

namespace quantrain::quant {

/// Zero point as it lies in memory: signed activations are stored + 128.   docs/quantization.md
/// (13)
int32_t stored_zero_point(const QParams& activation);
/// Clamp of a requantization in stored bytes.   docs/quantization.md (9), (13)
CodeClamp stored_clamp(const QParams& activation, Activation fused);

/// What a layer's output holds.
enum class OutputKind { kCodes, kAccumulators };

/// Tensors of a layer in a file: name, extents, bytes of one type.
struct LayerTensor {
  std::string name;
  Shape shape;
  std::variant<std::vector<int8_t>, std::vector<int32_t>, std::vector<float>> values;
};

/// One step of integer inference: const, safe to call from several threads, of use without a model.
/// Reads codes, one byte each, batch outermost; writes codes, or int32 accumulators where
/// requantize_to() was not called.
class IntegerLayer {
 public:
  explicit IntegerLayer(std::string name) : name_(std::move(name)) {}
  virtual ~IntegerLayer() = default;

  /// Path of the layer that it was made from; in messages.
  const std::string& name() const { return name_; }
  /// "quantized_conv2d": key in a saved model.
  virtual std::string_view type() const = 0;
  /// Name of the kernel that runs: "conv2d_u8s8_u8".
  virtual std::string_view kernel() const = 0;
  /// Per sample.
  virtual std::vector<Shape> input_shapes() const = 0;
  virtual Shape output_shape() const = 0;
  virtual OutputKind output_kind() const { return OutputKind::kCodes; }
  /// Parameters of the codes that come out.
  /// Throws: QuantError if it has none (yet).
  virtual QParams output_params() const = 0;
  /// What one step of the accumulators that come out means: real = accumulator * scale.
  /// Throws: QuantError if the output is no accumulators, or its channels have scales of their own.
  virtual double accumulator_scale() const;
  /// Gives the output its parameters, with an activation fused in front.
  /// Throws: QuantError if they are not those of u8 or s8 activations per tensor, or a multiplier
  /// makes no sense.
  virtual void requantize_to(const QParams& y, Activation activation) = 0;

  /// n samples; the output holds n * output_shape().elements() elements of output_kind(). Takes no
  /// memory but from the pool.
  virtual void run(int64_t n, std::span<const uint8_t* const> inputs, void* output) const = 0;

  /// Whether the output is the input's bytes under another shape: run() copies, a model does not.
  virtual bool is_view() const { return false; }
  virtual Attributes attributes() const = 0;
  virtual std::vector<LayerTensor> tensors() const { return {}; }

  /// Weights, biases, multipliers and parameters, as they are stored.
  int64_t size_bytes() const;

 private:
  std::string name_;
};

}  // namespace quantrain::quant
