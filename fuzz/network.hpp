#pragma once

#include "framework/autograd/ops.hpp"
#include "layers/layers.hpp"
#include "quant/prepare/prepare.hpp"

namespace quantrain::fuzz {

inline Tensor example() { return Tensor::full({1, 4, 4, 1}, 0.5f); }

/// A network prepared for quantization. It has a folded batch norm, learned scales and a histogram,
/// so that its file has many kinds of state.
inline Sequential prepared_network() {
  Sequential net{Conv2d{1, 2, {.kernel = 3, .bias = false}},
                 BatchNorm2d{2},
                 ReLU{},
                 Flatten{},
                 Linear{8, 5},
                 ReLU{},
                 Linear{5, 3}};
  quant::QConfig config = quant::QConfig::int8();
  config.input_range = {0.0f, 1.0f};
  config.layers["4"] = config.model;
  config.layers["4"].weight.estimator = quant::Estimator::kLearned;
  config.layers["4"].activation.observer = quant::HistogramOptions{.bins = 64};
  quant::prepare_qat(net, example(), config);
  return net;
}

}  // namespace quantrain::fuzz
