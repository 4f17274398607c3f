#include "tests/quant/random_network.hpp"

#include "framework/core/error.hpp"
#include "quant/analysis/parity.hpp"
#include "quant/lowering/convert.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"

namespace quantrain::quant::test {
namespace {

Shape batch_of(int64_t n, const Shape& sample) { return {n, sample[0], sample[1], sample[2]}; }

}  // namespace

TEST_CASE("random networks convert to integers that equal the simulation", "[quant][convert]") {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    manual_seed(seed);
    RandomNetwork network = random_network(seed);
    INFO("seed " << seed << ": " << network.description);
    const Tensor example = random_images(batch_of(2, network.input), seed);
    prepare_qat(*network.net, example, network.config);
    train_a_little(*network.net, batch_of(6, network.input), 2, network.classes);
    const IntegerModel model = convert(*network.net, example);
    const Parity parity =
        verify_parity(*network.net, model, random_images(batch_of(11, network.input), seed + 1000));
    INFO("first difference: " << parity.first_difference());
    CHECK(parity.codes_equal() == 1.0);
    CHECK(parity.logits_equal() == 1.0);
  }
}

}  // namespace quantrain::quant::test
