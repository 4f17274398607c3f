#include <cmath>
#include <memory>
#include <utility>

#include "benchmarks/implementations.hpp"
#include "framework/arithmetic/activation.hpp"
#include "framework/arithmetic/fixed_point.hpp"
#include "framework/core/cpu.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/float/columns.hpp"
#include "framework/kernels/float/conv.hpp"
#include "framework/kernels/float/gemm.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain::benchmarks {
namespace {

using namespace kernels;

/// A call that owns its operands. Copies of the call share them, because std::function must be
/// copyable and buffers are not.
template <class Operands, class Body>
Call make_call(Operands operands, Body body) {
  auto owned = std::make_shared<Operands>(std::move(operands));
  return [owned, body] { body(*owned); };
}

struct GemmF32 {
  Buffer<float> a, b, c;
  PackedMatrixF32 packed;
};

MatrixF32 left(const Problem& p, const Buffer<float>& a) {
  return p.transpose_a ? MatrixF32{a.data(), 1, p.m} : MatrixF32{a.data(), p.k, 1};
}

MatrixF32 right(const Problem& p, const Buffer<float>& b) {
  return p.transpose_b ? MatrixF32{b.data(), 1, p.k} : MatrixF32{b.data(), p.n, 1};
}

GemmF32 gemm_operands(const Problem& p) {
  return {filled<float>(p.m * p.k), filled<float>(p.k * p.n), Buffer<float>(p.m * p.n), {}};
}

Call gemm(const Problem& p) {
  return make_call(gemm_operands(p), [p](GemmF32& x) {
    gemm_f32(p.m, p.n, p.k, left(p, x.a), right(p, x.b), x.c.data(), p.n);
  });
}

Call gemm_packed(const Problem& p) {
  GemmF32 operands = gemm_operands(p);
  operands.packed = PackedMatrixF32(p.k, p.n, right(p, operands.b));
  return make_call(std::move(operands),
                   [p](GemmF32& x) { gemm_f32(p.m, left(p, x.a), x.packed, x.c.data(), p.n); });
}

struct Integers {
  Buffer<uint8_t> x;
  Buffer<int8_t> plain;  // the weights before packing
  PackedWeightsS8 w;
  ProductParams params;
  Buffer<int32_t> acc;
  Buffer<uint8_t> y;

  /// Operands of `bits`, in the layout for them or, if `as_bytes` is set, in that of 8 bits.
  explicit Integers(const Conv2dShape& s, ProductBits bits = {}, bool as_bytes = true)
      : x(filled<uint8_t>(s.x_elements())),
        plain(filled<int8_t>(s.weight_elements())),
        acc(s.y_elements()),
        y(s.y_elements()) {
    for (int8_t& weight : plain) {
      const int code = weight >> (8 - bits.weights);
      weight = static_cast<int8_t>(bits.weights == 1 ? 2 * code + 1 : code);
    }
    if (bits.binary) {
      for (uint8_t& code : x) code &= 1;
    }
    w = PackedWeightsS8(s, plain.data(), as_bytes ? ProductBits{} : bits);
    const int64_t channels = w.outputs();
    const Buffer<int32_t> bias = filled<int32_t>(channels);
    Buffer<int32_t> m0(channels);
    Buffer<int32_t> shift(channels);
    for (int64_t i = 0; i < channels; ++i) {
      const Multiplier m = make_multiplier(
          1.0 / (16.0 * static_cast<double>(s.reduction()) + static_cast<double>(i)));
      m0[i] = m.m0;
      shift[i] = m.shift;
    }
    RequantizeU8 requantize;
    requantize.m0 = m0.data();
    requantize.shift = shift.data();
    params = ProductParams(w, 0, bias.data(), &requantize);
  }
};

Conv2dShape gemm_shape(const Problem& p) { return {.n = p.m, .c = p.k, .o = p.n}; }

Integers gemm_integers(const Problem& p) { return Integers(gemm_shape(p)); }

Call gemm_integer(const Problem& p) {
  return make_call(gemm_integers(p), [p](Integers& o) {
    gemm_u8s8_s32(p.m, p.k, o.x.data(), o.w, o.params, o.acc.data());
  });
}

Call gemm_requantize(const Problem& p) {
  return make_call(gemm_integers(p), [p](Integers& o) {
    gemm_u8s8_u8(p.m, p.k, o.x.data(), o.w, o.params, o.y.data());
  });
}

constexpr ProductBits kBits4{.weights = 4};
constexpr ProductBits kBits2{.weights = 2};
constexpr ProductBits kBits1{.weights = 1, .binary = true};

/// A product of few bits, by the kernel for them or by that of 8 bits.
template <ProductBits bits, bool as_bytes>
Call few_bits(const Problem& p) {
  const Conv2dShape s = p.is_gemm() ? gemm_shape(p) : p.conv;
  return make_call(Integers(s, bits, as_bytes),
                   [s](Integers& o) { conv2d_u8s8_u8(s, o.x.data(), o.w, o.params, o.y.data()); });
}

struct ConvF32 {
  Buffer<float> x, w, bias, y;
  explicit ConvF32(const Conv2dShape& s)
      : x(filled<float>(s.x_elements())),
        w(filled<float>(s.weight_elements())),
        bias(filled<float>(s.o)),
        y(filled<float>(s.y_elements())) {}
};

/// Packs the weights before the timed call, as onednn.cpp does.
Call conv_forward(const Problem& p) {
  struct Operands {
    ConvF32 values;
    PackedWeightsF32 w;
  };
  ConvF32 values(p.conv);
  PackedWeightsF32 w(p.conv, values.w.data());
  return make_call(Operands{std::move(values), std::move(w)}, [shape = p.conv](Operands& o) {
    EpilogueF32 epilogue;
    epilogue.bias = o.values.bias.data();
    conv2d_f32(shape, o.values.x.data(), o.w, o.values.y.data(), epilogue);
  });
}

Call conv_backward_data(const Problem& p) {
  return make_call(ConvF32(p.conv), [shape = p.conv](ConvF32& o) {
    conv2d_backward_data_f32(shape, o.y.data(), o.w.data(), o.x.data());
  });
}

Call conv_backward_weights(const Problem& p) {
  return make_call(ConvF32(p.conv), [shape = p.conv](ConvF32& o) {
    conv2d_backward_weights_f32(shape, o.x.data(), o.y.data(), o.w.data());
  });
}

Call conv_requantize(const Problem& p) {
  const Conv2dShape& s = p.conv;
  return make_call(Integers(s),
                   [s](Integers& o) { conv2d_u8s8_u8(s, o.x.data(), o.w, o.params, o.y.data()); });
}

struct BatchNormF32 {
  int64_t rows, columns;
  Buffer<float> x, y, grad_x;
  Buffer<float> gamma, beta, mean, variance, scale, shift, sum_grad, sum_grad_x;
  Buffer<uint8_t> mask;

  explicit BatchNormF32(const Conv2dShape& s)
      : rows(s.n * s.h * s.w),
        columns(s.c),
        x(filled<float>(s.x_elements())),
        y(filled<float>(s.x_elements())),
        grad_x(s.x_elements()),
        gamma(filled<float>(s.c)),
        beta(filled<float>(s.c)),
        mean(filled<float>(s.c)),
        variance(s.c),
        scale(s.c),
        shift(s.c),
        sum_grad(s.c),
        sum_grad_x(s.c),
        mask(filled<uint8_t>((s.x_elements() + 7) / 8)) {}
};

/// A batch norm in training, with its ReLU and the ReLU's mask.
Call batch_norm_forward(const Problem& p) {
  return make_call(BatchNormF32(p.conv), [](BatchNormF32& o) {
    column_moments_f32(o.rows, o.columns, o.x.data(), o.mean.data(), o.variance.data());
    for (int64_t c = 0; c < o.columns; ++c) {
      o.scale[c] = o.gamma[c] / std::sqrt(o.variance[c] + 1e-5f);
      o.shift[c] = o.beta[c] - o.mean[c] * o.scale[c];
    }
    column_affine_f32(o.rows,
                      o.columns,
                      o.x.data(),
                      o.scale.data(),
                      o.shift.data(),
                      upper_bound(Activation::kRelu),
                      o.y.data(),
                      o.mask.data());
  });
}

Call batch_norm_backward(const Problem& p) {
  return make_call(BatchNormF32(p.conv), [](BatchNormF32& o) {
    column_grad_sums_f32(o.rows,
                         o.columns,
                         o.x.data(),
                         o.mean.data(),
                         o.y.data(),
                         o.mask.data(),
                         o.sum_grad.data(),
                         o.sum_grad_x.data());
    const float share = 1.0f / static_cast<float>(o.rows);
    for (int64_t c = 0; c < o.columns; ++c) {
      o.scale[c] = -o.gamma[c] * o.sum_grad_x[c] * share;
      o.shift[c] = -o.gamma[c] * o.sum_grad[c] * share;
    }
    batch_norm_backward_f32(o.rows,
                            o.columns,
                            {.x = o.x.data(),
                             .grad_y = o.y.data(),
                             .mask = o.mask.data(),
                             .mean = o.mean.data(),
                             .a = o.gamma.data(),
                             .b = o.scale.data(),
                             .d = o.shift.data(),
                             .grad_x = o.grad_x.data()});
  });
}

/// The same call with the kernels of another instruction set.
template <MakeCall make, Isa isa>
Call with_isa(const Problem& p) {
  const Isa chosen = chosen_isa();
  set_isa(isa);
  Call call = make(p);
  set_isa(chosen);
  return [call, chosen] {
    set_isa(isa);
    call();
    set_isa(chosen);
  };
}

/// The same call with the reference loops instead of the SIMD kernels.
template <MakeCall make>
Call with_reference(const Problem& p) {
  return with_isa<make, Isa::kReference>(p);
}

/// The same call without tiles.
template <MakeCall make>
Call with_vnni(const Problem& p) {
  return with_isa<make, Isa::kAvx512Vnni>(p);
}

}  // namespace

Implementation quantrain_kernels() {
  return {"quantrain",
          set_threads,
          {{"gemm_f32", gemm},
           {"gemm_f32_packed", gemm_packed},
           {"gemm_u8s8", gemm_integer},
           {"gemm_u8s8_requantize", gemm_requantize},
           {"conv_f32_forward", conv_forward},
           {"conv_f32_backward_data", conv_backward_data},
           {"conv_f32_backward_weights", conv_backward_weights},
           {"conv_u8s8_requantize", conv_requantize},
           {"gemm_u8s4_requantize", few_bits<kBits4, false>},
           {"gemm_u8s2_requantize", few_bits<kBits2, false>},
           {"gemm_u1s1_requantize", few_bits<kBits1, false>},
           {"conv_u8s4_requantize", few_bits<kBits4, false>},
           {"conv_u1s1_requantize", few_bits<kBits1, false>},
           {"depthwise_f32_forward", conv_forward},
           {"depthwise_f32_backward_data", conv_backward_data},
           {"depthwise_f32_backward_weights", conv_backward_weights},
           {"depthwise_u8s8_requantize", conv_requantize},
           {"batch_norm_f32_forward", batch_norm_forward},
           {"batch_norm_f32_backward", batch_norm_backward}}};
}

Implementation byte_kernels() {
  return {"bytes",
          set_threads,
          {{"gemm_u8s4_requantize", few_bits<kBits4, true>},
           {"gemm_u8s2_requantize", few_bits<kBits2, true>},
           {"gemm_u1s1_requantize", few_bits<kBits1, true>},
           {"conv_u8s4_requantize", few_bits<kBits4, true>},
           {"conv_u1s1_requantize", few_bits<kBits1, true>}}};
}

Implementation vnni_kernels() {
  if (chosen_isa() != Isa::kAmx) return {"vnni", set_threads, {}};
  return {"vnni",
          set_threads,
          {{"gemm_u8s8", with_vnni<gemm_integer>},
           {"gemm_u8s8_requantize", with_vnni<gemm_requantize>},
           {"conv_u8s8_requantize", with_vnni<conv_requantize>}}};
}

Implementation reference_kernels() {
  return {"reference",
          set_threads,
          {{"gemm_f32", with_reference<gemm>},
           {"gemm_f32_packed", with_reference<gemm_packed>},
           {"gemm_u8s8", with_reference<gemm_integer>},
           {"gemm_u8s8_requantize", with_reference<gemm_requantize>},
           {"conv_f32_forward", with_reference<conv_forward>},
           {"conv_f32_backward_data", with_reference<conv_backward_data>},
           {"conv_f32_backward_weights", with_reference<conv_backward_weights>},
           {"conv_u8s8_requantize", with_reference<conv_requantize>},
           {"depthwise_f32_forward", with_reference<conv_forward>},
           {"depthwise_f32_backward_data", with_reference<conv_backward_data>},
           {"depthwise_f32_backward_weights", with_reference<conv_backward_weights>},
           {"depthwise_u8s8_requantize", with_reference<conv_requantize>},
           {"batch_norm_f32_forward", with_reference<batch_norm_forward>},
           {"batch_norm_f32_backward", with_reference<batch_norm_backward>}}};
}

}  // namespace quantrain::benchmarks
