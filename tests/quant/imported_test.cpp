#include "framework/core/file.hpp"
#include "layers/onnx/import_onnx.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/layers/onnx/onnx_networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {
namespace {

/// A batch for the network's input, in [0, 1].
Tensor batch_for(const Network& net, int64_t samples, uint64_t seed) {
  std::vector<int64_t> shape{samples};
  const std::vector<int64_t>& sample = net.inputs()[0].shape;
  shape.insert(shape.end(), sample.begin(), sample.end());
  return quantrain::test::random_tensor(Shape(shape), seed, 0.0f, 1.0f);
}

/// Calibrates the network, converts it, and compares its integers with the simulation's.
void check_deployed(Network net) {
  const Tensor example = batch_for(net, 1, 1);
  QConfig config = QConfig::int8();
  config.input_range = {0.0f, 1.0f};
  prepare_ptq(net, example, config);
  calibrate(net, batch_for(net, 32, 2));
  const IntegerModel model = convert(net, example);
  test::check_parity(net, model, batch_for(net, 20, 7));
}

TEST_CASE("imported networks convert to integers that equal the simulation", "[quant][onnx]") {
  for (const auto& [name, parts] : quantrain::test::onnx_networks()) {
    CAPTURE(name);
    const quantrain::test::TemporaryFolder folder;
    const std::vector<uint8_t> bytes = quantrain::test::onnx_model(parts);
    const std::span<const uint8_t> written[] = {bytes};
    write_file(folder / "m.onnx", written);
    check_deployed(import_onnx(folder / "m.onnx"));
  }
  const std::string exports = std::string(QUANTRAIN_TEST_DATA) + "/exports/";
  for (const char* const name : {"autoencoder",
                                 "ds_cnn",
                                 "mlp",
                                 "mobilenet_v2",
                                 "mobilenet_v3",
                                 "resnet",
                                 "signal",
                                 "unet"}) {
    CAPTURE(name);
    check_deployed(import_onnx(exports + name + ".onnx"));
  }
}

}  // namespace
}  // namespace quantrain::quant
