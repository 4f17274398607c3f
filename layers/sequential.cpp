#include "layers/sequential.hpp"

#include <utility>

namespace quantrain {

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (const auto& child : children()) y = (*child)(std::move(y));
  return y;
}

}  // namespace quantrain
