#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "layers/module.hpp"
#include "quant/training/phase.hpp"

namespace quantrain::quant {

/// What a tensor that enters a network says of its own codes: those it was made from
/// (Tensor::decoded), or those it holds. Null: floats without codes.
std::shared_ptr<const Codes> input_codes(const Tensor& x);

/// Prints what an input's codes mean: "[0, 1] (u8 scale 0.00392157 zero point 0), no features".
std::string describe_input(const QParams& params, const integer::InputFeatures* features);
/// The same of two that differ, so that the difference shows: the first feature that differs, and
/// as many digits as it takes.
std::pair<std::string, std::string> describe_inputs(const QParams& a,
                                                    const integer::InputFeatures* features_a,
                                                    const QParams& b,
                                                    const integer::InputFeatures* features_b);

/// Input slot: turns what comes in into codes of given parameters, which never move.
/// docs/quantization.md (12), (20)
/// x that carries codes of these parameters and features: those very codes. Floats: quantized by
/// (3), and counted where they saturate; within a Calibration, x passes as it is once it was
/// checked; an input with features takes none, as nothing says whether they are raw. Parameters and
/// features are constants of the state: one that has others is refused.
/// Shapes: y like x. Gradient: to floats as that of fake_quantize(); to x with codes, all of it.
/// Throws: QuantError if x carries codes of another meaning, or has features and x carries no codes;
/// DataError if x has a NaN or an infinity, or, while calibrating, values that saturate.
class InputQuantize : public Module, public PhasedSlot {
 public:
  /// name: of the input, in messages. features: null: none.
  /// Throws: QuantError unless these are valid parameters of unsigned 8-bit codes at one scale.
  explicit InputQuantize(QParams params,
                         std::shared_ptr<const integer::InputFeatures> features = nullptr,
                         std::string name = "input");
  std::string_view type() const override { return "InputQuantize"; }

  const QParams& params() const& { return params_; }
  QParams params() const&& { return params_; }
  /// Null: none.
  const std::shared_ptr<const integer::InputFeatures>& features() const& { return features_; }
  std::shared_ptr<const integer::InputFeatures> features() const&& { return features_; }

  /// Values that saturated so far, of floats that were quantized, in all threads. Not part of the
  /// state.
  int64_t saturated() const { return std::atomic_ref(saturated_).load(); }

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  Tensor pass_codes(const Tensor& x, std::shared_ptr<const Codes> codes) const;
  Tensor quantize_floats(const Tensor& x);
  Tensor result(const Tensor& x, std::shared_ptr<const Codes> codes, Buffer<uint8_t> mask) const;

  QParams params_;
  std::shared_ptr<const integer::InputFeatures> features_;
  std::string input_;
  mutable int64_t saturated_ = 0;  // by atomic_ref alone: a module can be moved, an atomic not
};

}  // namespace quantrain::quant
