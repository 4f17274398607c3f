#pragma once

#include "framework/core/cpu.hpp"
#include "quant/analysis/parity.hpp"
#include "quant/lowering/convert.hpp"
#include "tests/catch.hpp"

namespace quantrain::quant::test {

/// Checks that the network and its converted model compute the same integers in every layer.
inline void check_parity(Module& net,
                         const IntegerModel& model,
                         const std::vector<Tensor>& images) {
  const Parity parity = verify_parity(net, model, images);
  INFO("first difference: " << parity.first_difference());
  CHECK(parity.images == images[0].dim(0));
  CHECK(parity.codes_equal() == 1.0);
  CHECK(parity.logits_equal() == 1.0);
  CHECK(parity.top1_disagreements == 0);
  CHECK(parity.layers.size() == model.program().steps.size() + images.size());
}

inline void check_parity(Module& net, const IntegerModel& model, const Tensor& images) {
  check_parity(net, model, std::vector<Tensor>{images});
}

/// Checks, on every instruction set of this machine, that the network converts to the model's
/// program and that the two compute the same integers.
inline void check_on_every_isa(Module& net,
                               const IntegerModel& model,
                               const Tensor& example,
                               const Tensor& images) {
  const Isa chosen = chosen_isa();
  for (const Isa isa : usable_isas()) {
    set_isa(isa);
    INFO(isa_name(isa));
    const IntegerModel again = convert(net, example);
    CHECK(again.program() == model.program());
    check_parity(net, again, images);
  }
  set_isa(chosen);
}

/// The description of the value that a step writes. It says what the integers mean.
inline const integer::Value& step_output(const IntegerModel& model, size_t step) {
  return model.program().value(model.program().steps.at(step).output);
}
inline const integer::Value& last_output(const IntegerModel& model) {
  return step_output(model, model.program().steps.size() - 1);
}

}  // namespace quantrain::quant::test
