#include "framework/autograd/ops/reduce.hpp"

#include <algorithm>
#include <numeric>

#include "framework/core/parallel.hpp"
#include "framework/kernels/float/columns.hpp"
#include "framework/kernels/float/elementwise.hpp"
#include "framework/kernels/float/grain.hpp"

namespace quantrain::reduce {
Extents extents(const Shape& shape) { return {1, shape.elements(), 1}; }

Extents extents(const Shape& shape, int axis) {
  axis = shape.axis(axis);
  Extents e;
  e.count = shape[axis];
  for (int i = 0; i < axis; ++i) e.outer *= shape[i];
  for (int i = axis + 1; i < shape.rank(); ++i) e.inner *= shape[i];
  return e;
}

Shape reduced_shape(const Shape& shape, int axis, bool keepdim) {
  std::vector<int64_t> result(shape.begin(), shape.end());
  const auto at = result.begin() + shape.axis(axis);
  if (keepdim) {
    *at = 1;
  } else {
    result.erase(at);
  }
  return Shape(result);
}

void sum(const Extents& e, float factor, const float* x, float* y) {
  parallel_for(e.outer, kernels::row_grain(e.count * e.inner), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const float* const from = x + o * e.count * e.inner;
      if (e.inner == 1) {
        y[o] = kernels::sum_f32(e.count, from);
      } else {
        kernels::sum_rows_f32(e.count, e.inner, from, y + o * e.inner);
      }
    }
  });
  if (factor != 1.0f) kernels::affine_f32(e.outer * e.inner, y, factor, 0.0f, y);
}

void expand(const Extents& e, float factor, const float* x, float* y) {
  parallel_for(e.outer, kernels::row_grain(e.count * e.inner), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      float* const to = y + o * e.count * e.inner;
      if (e.inner == 1) {
        std::fill_n(to, e.count, factor * x[o]);
        continue;
      }
      for (int64_t k = 0; k < e.count; ++k) {
        for (int64_t i = 0; i < e.inner; ++i) to[k * e.inner + i] = factor * x[o * e.inner + i];
      }
    }
  });
}

Attributes attributes(const Shape& shape) {
  std::vector<int64_t> axes(static_cast<size_t>(shape.rank()));
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return {{"axes", axes}, {"keepdims", int64_t{0}}};
}

Attributes attributes(const Shape& shape, int axis, bool keepdim) {
  return {{"axes", std::vector<int64_t>{shape.axis(axis)}}, {"keepdims", int64_t{keepdim}}};
}

}  // namespace quantrain::reduce
