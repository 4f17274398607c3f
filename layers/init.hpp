#pragma once

#include <cstdint>

#include "framework/autograd/tensor.hpp"
#include "framework/core/random.hpp"

namespace quantrain {

/// The source of the layers' initial values. Each randomly initialized parameter and each Dropout
/// takes the next random stream; streams are numbered from 0. So the same seed and the same layers
/// in the same order give the same bits on every machine. Generators of other threads have no
/// effect.
class Generator {
 public:
  explicit Generator(uint64_t seed = 0) : seed_(seed) {}
  /// The next random stream.
  Random next_stream();

 private:
  uint64_t seed_;
  uint64_t drawn_ = 0;
};

/// This thread's generator, which layers use by default. Every thread starts with seed 0;
/// manual_seed() changes the seed.
Generator& default_generator();
/// Restarts this thread's generator with a seed: default_generator() = Generator(seed). Affects the
/// layers that this thread makes afterwards.
void manual_seed(uint64_t seed);

/// Initial values. A weight has the shape [out, in], [O, K, C / groups] or [O, KH, KW, C / groups],
/// and must hold floats.
namespace init {

/// Number of inputs to one output, and number of outputs that one input contributes to if there is
/// one group and the stride is 1.
struct Fans {
  int64_t in;
  int64_t out;
};
/// For [out, in]: {in, out}. For [O, K, I]: {K * I, K * O}. For [O, KH, KW, I]: {KH * KW * I,
/// KH * KW * O}.
/// Throws: ShapeError for another rank.
Fans fans(const Shape& weight);

/// Draws each element uniformly from [low, high), except that rounding can produce high.
void uniform(Tensor tensor, float low, float high, Generator& generator = default_generator());
/// Draws each element from a normal distribution with this mean and standard deviation.
void normal(Tensor tensor, float mean, float deviation, Generator& generator = default_generator());

/// Uniform in +-sqrt(6 / ((1 + a^2) * fan_in)), where a is the activation's slope for negative
/// inputs. Layers use a^2 = 5, which gives +-1 / sqrt(fan_in), as in PyTorch.
/// Source: He et al. 2015.
void kaiming_uniform(Tensor weight,
                     double a_squared = 0.0,
                     Generator& generator = default_generator());
/// Normal with deviation sqrt(2 / ((1 + a^2) * fan_in)).   Source: He et al. 2015.
void kaiming_normal(Tensor weight,
                    double a_squared = 0.0,
                    Generator& generator = default_generator());
/// Uniform in +-gain * sqrt(6 / (fan_in + fan_out)).   Source: Glorot and Bengio 2010.
void xavier_uniform(Tensor weight, double gain = 1.0, Generator& generator = default_generator());
/// Normal with deviation gain * sqrt(2 / (fan_in + fan_out)).   Source: Glorot and Bengio 2010.
void xavier_normal(Tensor weight, double gain = 1.0, Generator& generator = default_generator());

/// The default of Linear, Conv1d and Conv2d: draws the weight by kaiming_uniform with a^2 = 5, and
/// the bias, if it is defined, uniformly in +-1 / sqrt(fan_in).
void layer_default(const Tensor& weight,
                   const Tensor& bias,
                   Generator& generator = default_generator());

}  // namespace init
}  // namespace quantrain
