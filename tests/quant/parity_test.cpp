#include "quant/analysis/parity.hpp"

#include "framework/core/error.hpp"
#include "framework/data/loader.hpp"
#include "quant/lowering/convert.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"

namespace quantrain::quant {
namespace {

using test::conv_net;
using test::mlp;
using test::random_images;

}  // namespace

TEST_CASE("parity refuses a model of another network, and to hold for nothing", "[quant][parity]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential convolutions = conv_net();
  prepare_qat(convolutions, example, QConfig::int8());
  convolutions(example);
  const IntegerModel model = convert(convolutions, example);
  Sequential linear = mlp();
  prepare_qat(linear, random_images({2, 12}, 1), QConfig::int8());
  linear(random_images({2, 12}, 1));
  QUANTRAIN_CHECK_ERROR(verify_parity(linear, model, random_images({3, 12}, 1)),
                        ShapeError,
                        "the model takes samples [8, 8, 1], got [3, 12]");
  QUANTRAIN_CHECK_ERROR(verify_parity(convolutions, model, Tensor::zeros({0, 8, 8, 1})),
                        DataError,
                        "nothing to compare: the batch is empty");
  QUANTRAIN_CHECK_ERROR(verify_parity(convolutions, model, std::vector<Batch>()),
                        DataError,
                        "nothing to compare: there is no batch");
  Sequential other{Flatten{}, Linear{64, 4}};
  prepare_qat(other, example, QConfig::int8());
  other(example);
  QUANTRAIN_CHECK_ERROR(
      verify_parity(other, model, example), GraphError, "not converted from this network");
  CHECK(other.training());
}

}  // namespace quantrain::quant
