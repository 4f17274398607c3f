#include "layers/sequential.hpp"

namespace quantrain {

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (const auto& child : children()) y = (*child)(y);
  return y;
}

}  // namespace quantrain
