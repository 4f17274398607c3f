#pragma once

#include "layers/network/network_file.hpp"
#include "quant/lowering/convert.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::quant::test {

/// Checks that a prepared network, in evaluation mode, computes the integers of its converted form,
/// and that a file keeps them. Returns the network that was loaded, in evaluation mode.
inline Network check_kept(Network& net, const Tensor& images) {
  net.eval();
  const IntegerModel model = convert(net, images);
  check_parity(net, model, images);
  const quantrain::test::TemporaryFolder folder;
  save_network(net, folder / "net");
  Network again = load_network(folder / "net");
  again.eval();
  CHECK(convert(again, images).program() == model.program());
  return again;
}

}  // namespace quantrain::quant::test
