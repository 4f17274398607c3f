#pragma once

#include "quant/analysis/parity.hpp"
#include "tests/catch.hpp"

namespace quantrain::quant::test {

/// The network and the model that it was converted to compute the same integers in every layer.
inline void check_parity(Module& net, const IntegerModel& model, const Tensor& images) {
  const Parity parity = verify_parity(net, model, images);
  INFO("first difference: " << parity.first_difference());
  CHECK(parity.images == images.dim(0));
  CHECK(parity.codes_equal() == 1.0);
  CHECK(parity.logits_equal() == 1.0);
  CHECK(parity.top1_disagreements == 0);
  CHECK(parity.layers.size() == model.layers().size() + 1);
}

}  // namespace quantrain::quant::test
