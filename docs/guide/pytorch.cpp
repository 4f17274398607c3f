// Takes a network that was trained elsewhere from its .onnx file to integers and C99.
#include <iostream>

#include "framework/core/error.hpp"
#include "layers/onnx/import_onnx.hpp"
#include "quant/analysis/parity.hpp"
#include "quant/export/c99/export_c99.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "shapes.hpp"
#include "training.hpp"

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "shapes.onnx";
  const Dataset training_set = shapes(3000, 1), test_set = shapes(500, 2);

  Network net = import_onnx(path);
  std::cout << "accuracy of the file: " << accuracy(net, test_set) << '\n';

  const Tensor example = test_set.batch(0, 1).input;
  quant::prepare_ptq(net, example, quant::QConfig::int8());
  quant::calibrate(net, DataLoader{training_set.first(320)});
  const quant::IntegerModel model = quant::convert(net, example);
  write_c99(".", export_c99(model.program(), {.name = "imported"}));

  std::cout << "accuracy in integers: " << accuracy(net, test_set) << '\n';
  const quant::Parity parity = quant::verify_parity(net, model, DataLoader{test_set});
  std::cout << parity;
  return parity.first_difference().empty() ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
