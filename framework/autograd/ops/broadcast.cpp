#include "framework/autograd/ops/broadcast.hpp"

#include <algorithm>
#include <array>

#include "framework/autograd/tensor_access.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/float/columns.hpp"
#include "framework/kernels/float/grain.hpp"

namespace quantrain {
namespace {

using Extents = std::array<int64_t, Shape::kMaxRank>;

/// The extents of `shape`, with axes of extent 1 in front, so that there are `rank` axes.
Extents aligned(const Shape& shape, int rank) {
  Extents extents;
  extents.fill(1);
  std::copy(shape.begin(), shape.end(), extents.begin() + (rank - shape.rank()));
  return extents;
}

/// y [outer, inner] = sum of x [outer, extent, inner] over the middle axis.
void sum_middle(int64_t outer, int64_t extent, int64_t inner, const float* x, float* y) {
  for (int64_t i = 0; i < outer; ++i) {
    if (inner == 1) {
      y[i] = kernels::sum_f32(extent, x + i * extent);
    } else {
      kernels::sum_rows_f32(extent, inner, x + i * extent * inner, y + i * inner);
    }
  }
}

}  // namespace

Shape broadcast_shape(std::string_view operation, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  const Extents extents_a = aligned(a, rank);
  const Extents extents_b = aligned(b, rank);
  Extents extents;
  for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
    if (extents_a[i] != extents_b[i] && extents_a[i] != 1 && extents_b[i] != 1) {
      throw ShapeError(operation, "shapes do not broadcast: ", a, " and ", b);
    }
    extents[i] = extents_a[i] == 1 ? extents_b[i] : extents_a[i];
  }
  return Shape(std::span<const int64_t>(extents.data(), static_cast<size_t>(rank)));
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int rank = shape.rank();
  const Extents source = aligned(x.shape(), rank);
  const Extents target = aligned(shape, rank);
  Extents stride;  // x's stride along each axis of the result; 0 where x is repeated
  int64_t step = 1;
  for (int axis = rank - 1; axis >= 0; --axis) {
    const auto i = static_cast<size_t>(axis);
    stride[i] = source[i] == 1 ? 0 : step;
    step *= source[i];
  }
  const int64_t inner = rank == 0 ? 1 : shape.back();
  const int64_t inner_stride = rank == 0 ? 0 : stride[static_cast<size_t>(rank - 1)];

  Tensor y = Tensor::empty(shape);
  if (y.elements() == 0) return y;
  const Floats from = x.floats();
  float* const to = y.mutable_data();
  parallel_for(y.elements() / inner, kernels::row_grain(inner), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t offset = 0;
      int64_t rest = row;
      for (int axis = rank - 2; axis >= 0; --axis) {
        const auto i = static_cast<size_t>(axis);
        offset += rest % target[i] * stride[i];
        rest /= target[i];
      }
      const float* const first = from.data() + offset;
      float* const out = to + row * inner;
      if (inner_stride == 1) {
        std::copy_n(first, inner, out);
      } else {
        std::fill_n(out, inner, *first);
      }
    }
  });
  return y;
}

Tensor reduce_to(const Tensor& grad_y, const Shape& shape) {
  if (grad_y.shape() == shape) return grad_y;
  if (grad_y.elements() == 0) return Tensor::zeros(shape);
  const int rank = grad_y.rank();
  const Extents target = aligned(shape, rank);
  Extents extents = aligned(grad_y.shape(), rank);  // the extents of `sum`, which shrinks

  Tensor sum = grad_y;
  int axis = 0;
  while (axis < rank) {
    // Neighbouring axes that are summed over are merged into one axis.
    int end = axis;
    int64_t extent = 1;
    while (end < rank && target[static_cast<size_t>(end)] == 1)
      extent *= extents[static_cast<size_t>(end++)];
    if (extent > 1) {
      const int64_t outer =
          Shape(std::span<const int64_t>(extents.data(), static_cast<size_t>(axis))).elements();
      Tensor next = Tensor::empty({sum.elements() / extent});
      const Floats sum_floats = sum.floats();
      sum_middle(outer, extent, sum.elements() / (outer * extent), sum_floats, next.mutable_data());
      std::fill(extents.begin() + axis, extents.begin() + end, 1);
      sum = next;
    }
    axis = end + 1;
  }
  return TensorAccess::with_shape(sum, shape);
}

Tensor broadcast_binary(std::string_view operation,
                        BinaryKernel kernel,
                        const Tensor& a,
                        const Tensor& b) {
  Tensor y = Tensor::empty(broadcast_shape(operation, a.shape(), b.shape()));
  const Floats lhs = broadcast_to(a, y.shape()).floats();
  const Floats rhs = broadcast_to(b, y.shape()).floats();
  kernel(y.elements(), lhs, rhs, y.mutable_data());
  return y;
}

}  // namespace quantrain
