#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "layers/module.hpp"
#include "quant/prepare/phase.hpp"

namespace quantrain::quant {

/// The codes of a network's input tensor x: x's own if it holds codes, or the codes from which
/// Tensor::decoded() computed its floats. Null if x holds floats without codes.
std::shared_ptr<const Codes> input_codes(const Tensor& x);

/// Describes what an input's codes mean: "[0, 1] (u8 scale 0.00392157 zero point 0), no features".
std::string describe_input(const QParams& params, const integer::InputFeatures* features);
/// The same for two inputs whose codes mean different things. If both have the same number of
/// features, the texts show the first feature that differs; else, feature 0. Numbers have enough
/// digits to see the difference.
std::pair<std::string, std::string> describe_inputs(const QParams& a,
                                                    const integer::InputFeatures* features_a,
                                                    const QParams& b,
                                                    const integer::InputFeatures* features_b);

/// Input slot: turns the input into codes, or into their real values with Simulation::kFloat. Its
/// parameters are given and never change.   docs/quantization.md (12), (20)
/// If x carries codes with these parameters and features, the result has the same codes. Floats are
/// quantized by (3), and saturating values are counted; if more than half saturate, or nearly all
/// of a column (Outside::kRefuseMost), they are refused, unless set_outside() says otherwise.
/// Within a Calibration or a FloatMode, x passes unchanged; a Calibration also checks that no float
/// saturates. If the input has features, x must carry codes, because plain floats could be raw
/// values or the values z of (20). The state stores parameters and features as constants: loading a
/// state with other values is an error.
/// Shapes: y like x. Gradient: like fake_quantize() if x holds plain floats; all of grad_y if x
/// carries codes.
/// Throws: QuantError if x carries codes with other parameters or features, or if the input has
/// features and x carries no codes; DataError if x has a NaN or an infinity (not checked
/// within a FloatMode), if values saturate within a Calibration, or if too many saturate.
class InputQuantize : public Module, public Phased {
 public:
  /// name: the input's name in messages. features: null for none.
  /// Throws: QuantError unless params are valid parameters of unsigned 8-bit codes with one scale,
  /// and the features are valid.
  explicit InputQuantize(QParams params,
                         std::shared_ptr<const integer::InputFeatures> features = nullptr,
                         std::string name = "input");
  std::string_view type() const override { return "InputQuantize"; }

  const QParams& params() const& { return params_; }
  QParams params() const&& { return params_; }
  /// Null if the input has no features.
  const std::shared_ptr<const integer::InputFeatures>& features() const& { return features_; }
  std::shared_ptr<const integer::InputFeatures> features() const&& { return features_; }

  /// Number of floats that saturated so far, in all threads. Not part of the state.
  int64_t saturated() const { return std::atomic_ref(saturated_).load(); }
  /// Which batches of floats are refused because their values saturate. Not part of the state.
  Outside outside() const { return outside_; }
  void set_outside(Outside outside) { outside_ = outside; }

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  Tensor pass_codes(const Tensor& x, std::shared_ptr<const Codes> codes) const;
  Tensor quantize_floats(const Tensor& x);
  Tensor result(const Tensor& x, std::shared_ptr<const Codes> codes, Buffer<uint8_t> mask) const;

  QParams params_;
  std::shared_ptr<const integer::InputFeatures> features_;
  std::string input_;
  Outside outside_ = Outside::kRefuseMost;
  mutable int64_t saturated_ = 0;  // accessed by atomic_ref, because a std::atomic cannot be moved
};

}  // namespace quantrain::quant
