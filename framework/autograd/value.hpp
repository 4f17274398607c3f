#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "framework/arithmetic/activation.hpp"
#include "framework/arithmetic/stored.hpp"
#include "framework/core/buffer.hpp"
#include "framework/core/shape.hpp"
#include "framework/integer/input_encoding.hpp"
#include "framework/integer/operation.hpp"
#include "framework/kernels/code_view.hpp"

namespace quantrain {

/// What a tensor holds.
enum class ValueKind { kFloat, kCodes, kWaiting };

/// How codes of up to 8 bits are stored, one byte each.
enum class CodeStorage {
  kU8,  ///< activations, unsigned bytes; 128 is added to signed codes and their zero point
  kS8,  ///< weights, the signed codes themselves
};

/// Integers q with their meaning, real = scale * (q - zero_point). They come from a FakeQuantize, a
/// data set or an integer operation.   docs/quantization.md (1), (13)
struct Codes {
  Buffer<uint8_t> bytes;
  CodeStorage storage = CodeStorage::kU8;
  QParams params;  ///< of the codes themselves, not of their stored form
  /// For a network's input: the offset and scale of each feature, applied to raw values before they
  /// were quantized. Null if there are none.   docs/quantization.md (20)
  std::shared_ptr<const integer::InputFeatures> features{};
  /// The integer operation that computed the codes, sample by sample, from the codes of its inputs.
  /// The deployed network runs it. Null for codes that come from floats or from a data set.
  std::shared_ptr<const integer::Operation> operation{};

  /// Stored byte = code + offset.
  static int32_t offset(CodeStorage storage, const QType& type) {
    return storage == CodeStorage::kU8 ? stored_offset(type) : 0;
  }
  int32_t offset() const { return offset(storage, params.type); }
  /// Zero point of the stored bytes. Requires per-tensor parameters.
  int32_t stored_zero_point() const { return params.zero_point[0] + offset(); }
  const uint8_t* u8() const& { return bytes.data(); }
  const uint8_t* u8() const&& = delete;
  const int8_t* s8() const& { return reinterpret_cast<const int8_t*>(bytes.data()); }
  const int8_t* s8() const&& = delete;
  /// A view of the codes for products that dequantize codes while they read them. Valid while the
  /// codes live.
  kernels::CodeView view() const&& = delete;
  kernels::CodeView view() const& {
    return {bytes.data(),
            storage == CodeStorage::kS8,
            offset(),
            params.scale.data(),
            params.zero_point.data(),
            params.per_channel() ? 1 : 0};
  }
  /// Dequantizes an input's codes, which are kU8 with one scale, into y. A byte at scale 1/255 and
  /// zero point 0 becomes byte / 255.
  void decode(float* y) const;
  /// Whether both have the same parameters, storage and features.
  bool same_meaning(const Codes& other) const;
  /// Dequantizes into y. `shape` is the shape of the tensor that holds the codes.
  void to_float(const Shape& shape, float* y) const;
};

/// The result of an integer operation, before its quantization parameters are known. The
/// FakeQuantize that follows knows these parameters. It completes the operation and runs it as the
/// deployed network does. Floats are computed only on request.
class WaitingResult {
 public:
  virtual ~WaitingResult() = default;
  /// Real values, before any activation.
  virtual void to_float(float* y) const = 0;
  /// Completes the operation with the activation and the output's parameters y, runs it, and
  /// returns it. Writes the stored codes (CodeStorage::kU8) to `codes`. Unless `mask` is null,
  /// writes to it which elements pass the gradient (GradientMask).
  /// docs/quantization.md (4), (8) to (11), (18)
  /// Throws: QuantError if y is not per tensor or has more than 8 bits, or a multiplier is out of
  /// range.
  virtual std::shared_ptr<const integer::Operation> requantize(const QParams& y,
                                                               Activation activation,
                                                               uint8_t* codes,
                                                               uint8_t* mask) const = 0;
  /// For i in [0, n), sets bit i % 8 of byte i / 8 if the activation passes the gradient of element
  /// i, else clears it. The gradient passes if the real value is above 0 and, for ReLU6, below 6.
  /// docs/quantization.md (9)
  virtual void activation_mask(int64_t n, Activation activation, uint8_t* mask) const;
  /// Smallest and largest real value of the n >= 1 elements, after the activation; NaN if a value
  /// is NaN.
  virtual Range range(int64_t n, Activation activation) const;

  /// Integer sums that can be an output of the network without requantization, such as logits, and
  /// the operation that computes them.
  struct Sums {
    const int32_t* values;
    std::vector<double> scale;  ///< real value of an integer sum of 1, for each channel
    std::shared_ptr<const integer::Operation> operation;
  };
  /// std::nullopt except for linear and convolution.
  virtual std::optional<Sums> sums() const { return std::nullopt; }
  /// The memory of sums(), for a caller who is the only one to hold this object and drops it
  /// afterwards. Only if sums() has a value.
  virtual Buffer<int32_t> take_sums() { return {}; }
};

}  // namespace quantrain
