#include "layers/init.hpp"

#include <cmath>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"

namespace quantrain {
namespace {

constexpr uint64_t kInitStream =
    0x696e6974;  // "init" in ASCII; loaders and dropout use other streams

double fan_in(const Tensor& weight) { return static_cast<double>(init::fans(weight.shape()).in); }

double fan_sum(const Tensor& weight) {
  const init::Fans fans = init::fans(weight.shape());
  return static_cast<double>(fans.in + fans.out);
}

void symmetric_uniform(const Tensor& tensor, double bound, Generator& generator) {
  init::uniform(tensor, static_cast<float>(-bound), static_cast<float>(bound), generator);
}

}  // namespace

Random Generator::next_stream() { return Random(seed_, kInitStream, drawn_++); }

Generator& default_generator() {
  thread_local Generator generator;
  return generator;
}

void manual_seed(uint64_t seed) { default_generator() = Generator(seed); }

namespace init {

Fans fans(const Shape& weight) {
  if (weight.rank() == 2) return {weight[1], weight[0]};
  if (weight.rank() != 3 && weight.rank() != 4) {
    throw ShapeError("init", "a weight is [out, in], [O, K, I] or [O, KH, KW, I], got ", weight);
  }
  const int64_t window = weight[1] * (weight.rank() == 4 ? weight[2] : 1);
  return {window * weight.back(), window * weight[0]};
}

void uniform(Tensor tensor, float low, float high, Generator& generator) {
  const DefaultRounding rounding;
  Random random = generator.next_stream();
  float* const x = tensor.mutable_data();
  for (int64_t i = 0; i < tensor.elements(); ++i) x[i] = random.uniform(low, high);
}

void normal(Tensor tensor, float mean, float deviation, Generator& generator) {
  const DefaultRounding rounding;
  Random random = generator.next_stream();
  float* const x = tensor.mutable_data();
  for (int64_t i = 0; i < tensor.elements(); ++i) x[i] = mean + deviation * random.normal();
}

void kaiming_uniform(Tensor weight, double a_squared, Generator& generator) {
  const DefaultRounding rounding;
  symmetric_uniform(weight, std::sqrt(6.0 / ((1.0 + a_squared) * fan_in(weight))), generator);
}

void kaiming_normal(Tensor weight, double a_squared, Generator& generator) {
  const DefaultRounding rounding;
  const double deviation = std::sqrt(2.0 / ((1.0 + a_squared) * fan_in(weight)));
  normal(weight, 0.0f, static_cast<float>(deviation), generator);
}

void xavier_uniform(Tensor weight, double gain, Generator& generator) {
  const DefaultRounding rounding;
  symmetric_uniform(weight, gain * std::sqrt(6.0 / fan_sum(weight)), generator);
}

void xavier_normal(Tensor weight, double gain, Generator& generator) {
  const DefaultRounding rounding;
  normal(weight, 0.0f, static_cast<float>(gain * std::sqrt(2.0 / fan_sum(weight))), generator);
}

void layer_default(const Tensor& weight, const Tensor& bias, Generator& generator) {
  const DefaultRounding rounding;
  kaiming_uniform(weight, 5.0, generator);
  if (bias.defined()) symmetric_uniform(bias, 1.0 / std::sqrt(fan_in(weight)), generator);
}

}  // namespace init
}  // namespace quantrain
