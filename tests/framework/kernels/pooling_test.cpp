#include <limits>

#include "framework/kernels/float/pooling.hpp"
#include "tests/framework/kernels/kernel_testing.hpp"

namespace quantrain::kernels {
namespace {

using test::check_against_reference;
using test::Exactly;
using test::random_floats;
using test::RoundingTolerance;

std::vector<Conv2dShape> shapes() {
  std::vector<Conv2dShape> shapes;
  for (const int64_t channels : {1, 7, 16, 17, 35}) {
    for (const int64_t kernel : {1, 2, 3}) {
      for (const int64_t stride : {1, 2, 3}) {
        for (const int64_t pad : {0, 1}) {
          Conv2dShape s;
          s.n = 2;
          s.h = 7;
          s.w = 6;
          s.c = s.o = s.groups = channels;
          s.kh = s.kw = kernel;
          s.stride_h = s.stride_w = stride;
          s.pad_h = s.pad_w = pad < kernel ? pad : 0;
          shapes.push_back(s);
        }
      }
    }
  }
  Conv2dShape large = shapes.back();
  large.n = 40;
  large.h = large.w = 12;
  shapes.push_back(large);
  // A sum over one of these windows consists of several chains of additions. A chain covers one row
  // of the window, or a part of a row.
  Conv2dShape wide = shapes.back();
  wide.n = 1;
  wide.h = wide.kh = 20;
  wide.w = wide.kw = 21;
  wide.stride_h = wide.stride_w = 1;
  wide.pad_h = wide.pad_w = 1;
  shapes.push_back(wide);
  wide.h = wide.kh = 3;
  wide.w = wide.kw = 300;
  shapes.push_back(wide);
  // The last windows reach beyond the padding.
  Conv2dShape reaching = shapes.front();
  reaching.h = 6;
  reaching.w = 8;
  reaching.kh = reaching.kw = 3;
  reaching.stride_h = reaching.stride_w = 2;
  reaching.end_h = reaching.end_w = 1;
  shapes.push_back(reaching);
  return shapes;
}

std::vector<float> position_floats(const std::vector<uint16_t>& values) {
  return {values.begin(), values.end()};
}

TEST_CASE("max pool and its gradient choose the first NaN, or else the first largest element",
          "[kernels][pooling][serial]") {
  for (const Conv2dShape& s : shapes()) {
    std::vector<float> x = random_floats(s.x_elements(), 1);
    for (size_t i = 0; i < x.size(); i += 3) x[i] = 0.5f;
    for (size_t i = 5; i < x.size(); i += 41) x[i] = std::numeric_limits<float>::quiet_NaN();
    for (size_t i = 4; i < x.size(); i += 17) x[i] = -std::numeric_limits<float>::infinity();
    const std::vector<float> grad = random_floats(s.y_elements(), 2);
    std::vector<float> y(grad.size());
    std::vector<uint16_t> position(grad.size());
    check_against_reference(Exactly{}, [&] {
      max_pool2d_f32(s, x.data(), y.data(), position.data());
      return y;
    });
    check_against_reference(Exactly{}, [&] {
      max_pool2d_f32(s, x.data(), y.data(), position.data());
      return position_floats(position);
    });
    check_against_reference(Exactly{}, [&] {
      max_pool2d_f32(s, x.data(), y.data(), nullptr);
      return y;
    });
    check_against_reference(RoundingTolerance{1e-6, 1e-6}, [&] {
      std::vector<float> grad_x(x.size(), -1.0f);
      max_pool2d_backward_f32(s, grad.data(), position.data(), grad_x.data());
      return grad_x;
    });
  }
}

TEST_CASE("average pool divides by the number of elements inside the image, also backward",
          "[kernels][pooling][serial]") {
  for (const Conv2dShape& s : shapes()) {
    const std::vector<float> x = random_floats(s.x_elements(), 1);
    const std::vector<float> grad = random_floats(s.y_elements(), 2);
    for (const int64_t divisor : {int64_t{0}, s.kh * s.kw}) {
      check_against_reference(RoundingTolerance{1e-6, 1e-6}, [&] {
        std::vector<float> y(grad.size());
        avg_pool2d_f32(s, divisor, x.data(), y.data());
        return y;
      });
      check_against_reference(RoundingTolerance{1e-6, 1e-6}, [&] {
        std::vector<float> grad_x(x.size(), -1.0f);
        avg_pool2d_backward_f32(s, divisor, grad.data(), grad_x.data());
        return grad_x;
      });
    }
  }
}

}  // namespace
}  // namespace quantrain::kernels
