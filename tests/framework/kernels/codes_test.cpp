#include "framework/kernels/code_view.hpp"

#include "framework/arithmetic/quantize.hpp"
#include "framework/kernels/float/conv.hpp"
#include "framework/kernels/float/gemm.hpp"
#include "tests/framework/kernels/integer_testing.hpp"
#include "tests/framework/kernels/kernel_testing.hpp"
#include "tests/threads.hpp"

namespace quantrain::kernels {
namespace {

using test::random_codes;
using test::random_floats;
using test::same_bits;

/// Codes of `channels` channels with `inner` elements each, and the floats that they
/// represent.
struct Coded {
  std::vector<uint8_t> bytes;
  std::vector<float> scale;
  std::vector<int32_t> zero_point;
  CodeView codes;
  std::vector<float> floats;

  Coded(int64_t channels, int64_t inner, bool is_signed, bool per_channel) {
    Random random(static_cast<uint64_t>(channels * 1000 + inner));
    bytes = random_codes(channels * inner, random);
    for (int64_t c = 0; c < (per_channel ? channels : 1); ++c) {
      scale.push_back(random.uniform(0.001f, 0.1f));
      zero_point.push_back(static_cast<int32_t>(random.below(256)) - 128);
    }
    const int32_t offset = is_signed ? 0 : 128;
    codes = {bytes.data(), is_signed, offset, scale.data(), zero_point.data(), per_channel ? 1 : 0};
    for (size_t i = 0; i < bytes.size(); ++i) {
      const size_t c = per_channel ? i / static_cast<size_t>(inner) : 0;
      const int32_t code = is_signed ? static_cast<int8_t>(bytes[i]) : bytes[i] - offset;
      floats.push_back(dequantize(code, scale[c], zero_point[c]));
    }
  }
};

/// Checks that both functions give the same bits on every instruction set and with several
/// numbers of threads.
template <class F, class G>
void check_same_bits(const F& of_codes, const G& of_floats) {
  const test::RestoreSettings restore;
  for (const Isa isa : usable_isas()) {
    set_isa(isa);
    INFO("isa " << isa_name(isa));
    for (const int threads : test::thread_counts({1, 7})) {
      set_threads(threads);
      REQUIRE(same_bits(of_codes(), of_floats()));
    }
  }
}

TEST_CASE("products of codes equal the products of their values bit for bit",
          "[kernels][gemm][serial]") {
  for (const bool is_signed : {false, true}) {
    for (const bool per_channel : {false, true}) {
      for (const int64_t m : {1, 65, 300}) {
        for (const int64_t n : {0, 1, 16, 70}) {
          for (const int64_t k : {0, 20, 530}) {
            CAPTURE(is_signed, per_channel, m, n, k);
            const std::vector<float> a = random_floats(m * k, 1);
            const Coded b(k, n, is_signed, per_channel);
            const auto product = [&](const auto& right) {
              std::vector<float> c(static_cast<size_t>(m * n), -1.0f);
              gemm_f32(m, n, k, {a.data(), k, 1}, right, c.data(), n);
              return c;
            };
            check_same_bits(
                [&] {
                  return product(CodeMatrix{b.codes, n});
                },
                [&] {
                  return product(MatrixF32{b.floats.data(), n, 1});
                });
          }
        }
      }
    }
  }
}

void check_weights_gradient(const Conv2dShape& s) {
  CAPTURE(s.n, s.h, s.w, s.c, s.o, s.kh, s.kw, s.stride_h, s.pad_h, s.groups);
  const Coded x(1, s.x_elements(), false, false);
  const std::vector<float> grad_y = random_floats(s.y_elements(), 2);
  const auto gradient = [&](const auto& images) {
    std::vector<float> grad_w(static_cast<size_t>(s.weight_elements()), -1.0f);
    conv2d_backward_weights_f32(s, images, grad_y.data(), grad_w.data());
    return grad_w;
  };
  check_same_bits([&] { return gradient(x.codes); }, [&] { return gradient(x.floats.data()); });
}

TEST_CASE("weight gradients from codes equal those from their values bit for bit",
          "[kernels][conv]") {
  // The batches hold 0, 1 or many images with few or many channels. Some shapes have chunks of
  // several images, and some have several chunks for one image.
  for (const int64_t images : {0, 1, 20}) {
    for (const int64_t channels : {1, 16}) {
      for (const int64_t stride : {1, 2, 3}) {
        for (const int64_t pad : {0, 1, 4}) {
          Conv2dShape s{.n = images, .h = 13, .w = 12, .c = channels, .o = 8, .kh = 3, .kw = 3};
          s.stride_h = s.stride_w = stride;
          s.pad_h = s.pad_w = pad;
          check_weights_gradient(s);
        }
      }
    }
  }
  check_weights_gradient({.n = 1, .h = 70, .w = 60, .c = 4, .o = 16, .kh = 3, .kw = 3});
  check_weights_gradient({.n = 4, .h = 9, .w = 9, .c = 64, .o = 64, .kh = 3, .kw = 3});
  check_weights_gradient({.n = 4, .h = 9, .w = 9, .c = 6, .o = 12, .kh = 3, .kw = 3, .groups = 3});
  check_weights_gradient({.n = 4, .h = 9, .w = 9, .c = 6, .o = 6, .kh = 3, .kw = 3, .groups = 6});
}

}  // namespace
}  // namespace quantrain::kernels
