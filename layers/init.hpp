#pragma once

#include <cstdint>

#include "framework/autograd/tensor.hpp"
#include "framework/core/random.hpp"

namespace quantrain {

/// Layers made from now on start from this seed (0 unless set). Every parameter draws from a stream
/// of its own, counted from here: the same seed followed by the same layers gives the same bits, on
/// every machine.
void manual_seed(uint64_t seed);

/// Starting values. A weight is [out, in] or [O, KH, KW, C / groups]; it must hold floats.
namespace init {

/// Number of inputs that make one output, and of outputs that one input takes part in.
struct Fans {
  int64_t in;
  int64_t out;
};
/// [out, in]: in, out. [O, KH, KW, I]: KH * KW * I, KH * KW * O.
/// Throws: ShapeError for another rank.
Fans fans(const Shape& weight);

/// The stream of the next parameter.
Random next_stream();

/// Each element in [low, high).
void uniform(Tensor tensor, float low, float high);
/// Each element normal with this mean and standard deviation.
void normal(Tensor tensor, float mean, float deviation);

/// Uniform in +-sqrt(6 / ((1 + a^2) * fan_in)); a is the slope of the activation below 0. A layer
/// starts with a^2 = 5: +-1 / sqrt(fan_in), as in PyTorch.
/// Source: He et al. 2015.
void kaiming_uniform(Tensor weight, double a_squared = 0.0);
/// Normal with deviation sqrt(2 / ((1 + a^2) * fan_in)).   Source: He et al. 2015.
void kaiming_normal(Tensor weight, double a_squared = 0.0);
/// Uniform in +-gain * sqrt(6 / (fan_in + fan_out)).   Source: Glorot and Bengio 2010.
void xavier_uniform(Tensor weight, double gain = 1.0);
/// Normal with deviation gain * sqrt(2 / (fan_in + fan_out)).   Source: Glorot and Bengio 2010.
void xavier_normal(Tensor weight, double gain = 1.0);

/// What Linear and Conv2d start from: kaiming_uniform with a^2 = 5; the bias uniform in +-1 /
/// sqrt(fan_in).
void layer_default(const Tensor& weight, const Tensor& bias);

}  // namespace init
}  // namespace quantrain
