// arm_layers             prints a line for each layer: name, multiply-adds, description
// arm_layers check       checks that each of the CPU's instruction sets equals the reference
// arm_layers NAME TIMES  computes a layer TIMES times; scripts/prove arm counts the instructions
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/core/cpu.hpp"
#include "framework/core/splitmix64.hpp"
#include "framework/kernels/integer/integer.hpp"
#include "tests/proofs/arm/layers.hpp"

namespace quantrain {
namespace {

// Some of these shapes leave vectors, tiles and groups of four partly filled. Others have
// convolution groups, strides or dilations.
const Layer kOddLayers[] = {
    {"linear_1_1", "", linear(1, 1)},
    {"linear_37_452", "", linear(37, 452)},
    {"rows_13_21_5", "", {.n = 13, .c = 21, .o = 5}},
    {"rows_7_67_47", "", {.n = 7, .c = 67, .o = 47}},
    {"padded", "", {.h = 9, .w = 7, .c = 5, .o = 11, .kh = 3, .kw = 2, .pad_h = 2, .pad_w = 1}},
    {"groups", "", {.n = 2, .h = 8, .w = 9, .c = 12, .o = 18, .kh = 3, .kw = 3, .groups = 3}},
    {"dilated",
     "",
     {.h = 11, .w = 12, .c = 4, .o = 9, .kh = 2, .kw = 3, .dilation_h = 2, .dilation_w = 3}},
    {"depthwise_5x3",
     "",
     {.h = 10, .w = 13, .c = 3, .o = 3, .kh = 5, .kw = 3, .pad_h = 2, .pad_w = 1, .groups = 3}},
    {"depthwise_4x1",
     "",
     {.h = 16, .w = 5, .c = 40, .o = 40, .kh = 4, .kw = 1, .stride_h = 2, .groups = 40}},
};

/// A layer whose operands depend only on its shape, packed for the chosen instruction set.
class Operands {
 public:
  /// shift: the shift of all multipliers; 0: a shift that suits the sums.
  Operands(const Conv2dShape& s, int32_t zero_x, int32_t shift)
      : s_(s),
        x_(s.x_elements()),
        plain_(s.weight_elements()),
        acc_(s.y_elements()),
        y_(s.y_elements()) {
    uint64_t state = 0;
    const auto below = [&](uint64_t n) {
      return static_cast<int32_t>(SplitMix64::mix(state += SplitMix64::kStep) % n);
    };
    Buffer<int32_t> bias(s.o), m0(s.o), shifts(s.o);
    for (uint8_t& x : x_) x = static_cast<uint8_t>(below(256));
    for (int8_t& w : plain_) w = static_cast<int8_t>(below(256) - 128);
    for (int32_t& b : bias) b = below(20001) - 10000;
    const Multiplier usual = make_multiplier(1.0 / (64.0 * static_cast<double>(s.reduction())));
    for (int32_t& m : m0) m = usual.m0 - below(1 << 20);
    std::fill(shifts.begin(), shifts.end(), shift == 0 ? usual.shift : shift);
    w_ = kernels::PackedWeightsS8(s, plain_.data());
    const kernels::RequantizeU8 requantize{
        .m0 = m0.data(), .shift = shifts.data(), .zero_point = 117, .lo = 3, .hi = 250};
    params_ = kernels::ProductParams(w_, zero_x, bias.data(), &requantize);
  }

  const Buffer<int32_t>& sums() {
    kernels::conv2d_u8s8_s32(s_, x_.data(), w_, params_, acc_.data());
    return acc_;
  }
  const Buffer<uint8_t>& codes() {
    kernels::conv2d_u8s8_u8(s_, x_.data(), w_, params_, y_.data());
    return y_;
  }

 private:
  Conv2dShape s_;
  Buffer<uint8_t> x_;
  Buffer<int8_t> plain_;
  kernels::PackedWeightsS8 w_;
  kernels::ProductParams params_;
  Buffer<int32_t> acc_;
  Buffer<uint8_t> y_;
};

/// Whether every usable instruction set computes the reference's sums and codes.
bool all_equal(const char* name, const Conv2dShape& s, int32_t zero_x, int32_t shift) {
  set_isa(Isa::kReference);
  Operands reference(s, zero_x, shift);
  const Buffer<int32_t>& sums = reference.sums();
  const Buffer<uint8_t>& codes = reference.codes();
  for (const Isa isa : usable_isas()) {
    set_isa(isa);
    Operands operands(s, zero_x, shift);
    bool equal =
        std::ranges::equal(sums, operands.sums()) && std::ranges::equal(codes, operands.codes());
    // This instruction set must also compute with weights that were packed for the reference.
    equal = equal && std::ranges::equal(reference.sums(), operands.sums()) &&
            std::ranges::equal(reference.codes(), operands.codes());
    if (equal) continue;
    std::cout << "differs: " << name << ", zero point " << zero_x << ", shift " << shift << ", "
              << isa_name(isa) << '\n';
    return false;
  }
  return true;
}

int check() {
  for (const Layer& layer : kLayers) {
    if (!all_equal(layer.name, layer.shape, 0, 0)) return 1;
  }
  for (const Layer& layer : kOddLayers) {
    for (const int32_t zero_x : {0, 77, 128, 255}) {
      for (const int32_t shift : {0, 16, 31, 33}) {
        if (!all_equal(layer.name, layer.shape, zero_x, shift)) return 1;
      }
    }
  }
  std::cout << "equal:";
  for (const Isa isa : usable_isas()) std::cout << ' ' << isa_name(isa);
  std::cout << '\n';
  return 0;
}

int list() {
  for (const Layer& layer : kLayers) {
    std::cout << layer.name << '\t' << layer.shape.y_elements() * layer.shape.reduction() << '\t'
              << layer.description << '\n';
  }
  return 0;
}

int compute(const std::string& name, int64_t times) {
  for (const Layer& layer : kLayers) {
    if (name != layer.name) continue;
    Operands operands(layer.shape, 0, 0);
    for (int64_t i = 0; i < times; ++i) operands.codes();
    return 0;
  }
  std::cerr << "arm_layers: no layer " << name << '\n';
  return 2;
}

}  // namespace
}  // namespace quantrain

int main(int argc, char** argv) {
  if (argc == 1) return quantrain::list();
  if (argc == 2 && std::string(argv[1]) == "check") return quantrain::check();
  if (argc == 3) return quantrain::compute(argv[1], std::atoll(argv[2]));
  std::cerr << "usage: arm_layers [check | NAME TIMES]\n";
  return 2;
}
