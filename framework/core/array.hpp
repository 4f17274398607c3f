#pragma once

// The only header that includes xtensor.
#include <algorithm>
#include <memory>
// xtensor 0.26 moved its headers to these folders.
#if __has_include(<xtensor/containers/xarray.hpp>)
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xarray.hpp>
#include <xtensor/core/xmath.hpp>
#include <xtensor/core/xnoalias.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#endif

#include "framework/core/shape.hpp"

namespace quantrain {

/// Row-major xtensor container of float32 that shares its memory with other owners. It can be part
/// of any xtensor expression. Assigning an expression of the same shape to it writes to the shared
/// memory, so the other owners see the new values.
using Array =
    xt::xarray_adaptor<xt::xbuffer_adaptor<float*, xt::smart_ownership, std::shared_ptr<float>>,
                       xt::layout_type::row_major,
                       xt::xarray<float>::shape_type>;

/// Like Array, but read-only.
using ConstArray = xt::xarray_adaptor<
    xt::xbuffer_adaptor<const float*, xt::smart_ownership, std::shared_ptr<const float>>,
    xt::layout_type::row_major,
    xt::xarray<float>::shape_type>;

namespace detail {
template <class Adaptor, class Float>
Adaptor adapt(std::shared_ptr<Float> data, const Shape& shape) {
  xt::xarray<float>::shape_type extents(static_cast<size_t>(shape.rank()));
  std::copy(shape.begin(), shape.end(), extents.begin());
  Float* const first = data.get();
  return Adaptor(xt::xbuffer_adaptor<Float*, xt::smart_ownership, std::shared_ptr<Float>>(
                     first, static_cast<size_t>(shape.elements()), std::move(data)),
                 extents);
}
}  // namespace detail

inline Array make_array(std::shared_ptr<float> data, const Shape& shape) {
  return detail::adapt<Array>(std::move(data), shape);
}
inline ConstArray make_const_array(std::shared_ptr<const float> data, const Shape& shape) {
  return detail::adapt<ConstArray>(std::move(data), shape);
}

}  // namespace quantrain
