#include "layers/sequential.hpp"

#include <utility>

#include "layers/fusion.hpp"

namespace quantrain {
Tensor Sequential::take_forward(Tensor x) {
  for (size_t i = 0; i < children().size(); ++i) {
    Module& layer = *children()[i];
    if (i + 1 < children().size() && run_fused(layer, *children()[i + 1], x))
      ++i;
    else
      x = layer(std::move(x));
  }
  return x;
}

}  // namespace quantrain
