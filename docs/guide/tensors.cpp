// Quantizes single tensors, without a network. This is the program of docs/guide/tensors.md.
#include <iostream>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "quant/observers/calibrator.hpp"
#include "quant/prepare/fake_quantize.hpp"
#include "quant/quantized_tensor.hpp"

using namespace quantrain;

/// [8, 3, 3, 16] values between -1 and 1.
Tensor random_weights() {
  Tensor w = Tensor::empty({8, 3, 3, 16});
  Random random(1, 2, 3);
  float* const values = w.mutable_data();
  for (int64_t i = 0; i < w.elements(); ++i) values[i] = random.uniform(-1.0f, 1.0f);
  return w;
}

void quantize_one() {
  const Tensor weights = random_weights();
  const QType type{.bits = 4, .is_signed = true, .narrow = true};
  const quant::QuantizedTensor q(weights, type, QScheme::kSymmetric, 0);  // a scale per output
  std::cout << "first code " << q.code(0) << ", scale " << q.params().scale[0] << ", "
            << q.compression_ratio() << " times smaller, mean squared error "
            << q.quantization_error(weights) << '\n';
}

void calibrate_named(const Tensor& x) {
  quant::Calibrator calibrator(quant::PercentileOptions{.low = 0.5, .high = 99.5});
  calibrator.collect("conv1", x);  // for each tensor and batch
  const QType type{.bits = 8};
  for (const auto& [name, params] : calibrator.finalize(type, QScheme::kAffine))
    std::cout << name << ": scale " << params.scale[0] << '\n';
}

void simulate(const Tensor& x) {
  quant::FakeQuantize q4(quant::FakeQuantizeConfig::q4());  // int2() is ternary, for weights
  q4.calibrate(x);
  std::cout << "noise of 4 bits: " << q4.quantization_noise(x) << '\n';
}

int main() try {
  quantize_one();
  calibrate_named(random_weights());
  simulate(random_weights());
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
