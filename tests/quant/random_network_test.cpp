#include "tests/quant/random_network.hpp"

#include "tests/catch.hpp"

namespace quantrain::quant::test {

TEST_CASE("random networks convert to integers that equal the simulation", "[quant][convert]") {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    RandomNetwork network = random_network(seed);
    INFO("seed " << seed << ": " << network.description);
    const Parity parity = train_and_verify(network, seed);
    INFO("first difference: " << parity.first_difference());
    CHECK(parity.codes_equal() == 1.0);
    CHECK(parity.logits_equal() == 1.0);
  }
}

}  // namespace quantrain::quant::test
