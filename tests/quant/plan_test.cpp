#include <sstream>

#include "framework/core/error.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/training/switches.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"

namespace quantrain::quant {
namespace {

using test::conv_net;
using test::random_images;

}  // namespace

TEST_CASE("a plan says what becomes of each layer and changes nothing", "[quant][plan]") {
  Sequential net = conv_net();
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  QUANTRAIN_CHECK_ERROR(plan(net, example), GraphError, "not prepared");
  prepare_qat(net, example, QConfig::bits(4, 6));
  const Plan dry = plan(net, example);
  CHECK(dry.convertible());
  REQUIRE(dry.rows.size() == 6);
  CHECK(dry.rows[0].name == "0");
  CHECK(dry.rows[0].kernel == "conv2d_u8s8_u8");
  CHECK(dry.rows[0].weight_bits == 4);
  CHECK(dry.rows[0].output_bits == 6);
  CHECK(dry.rows[0].accumulator_bound > 0);
  CHECK(dry.rows[0].folded == "1, 2");
  CHECK(dry.rows[5].output_bits == 32);
  for (const FakeQuantize* activation : Plugged(net).activations) {
    CHECK(activation->is_initialized() ==
          (activation == Plugged(net).activations[0]));  // the input's are given
  }
  std::ostringstream text;
  dry.print(text);
  CHECK(text.str().find("conv2d_u8s8_u8") != std::string::npos);
  QUANTRAIN_CHECK_ERROR(convert(net, example), QuantError, "was not calibrated");
}

}  // namespace quantrain::quant
