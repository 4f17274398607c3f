// Takes a network that is quantized already from its .onnx file to integers, trains it on, and
// prints it as C99.
#include <iostream>

#include "framework/core/error.hpp"
#include "quant/export/c99/export_c99.hpp"
#include "quant/import/onnx/import_quantized_onnx.hpp"
#include "quant/lowering/convert.hpp"
#include "shapes.hpp"
#include "training.hpp"

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "shapes_qdq.onnx";
  const Dataset training_set = shapes(3000, 1), test_set = shapes(500, 2);

  quant::QuantizedOnnx imported =
      quant::import_quantized_onnx(path, {.ranges = {{"input", {0.0f, 1.0f}}}});
  Network& net = imported.network;
  std::cout << imported.report;
  std::cout << "accuracy of the file: " << accuracy(net, test_set) << '\n';

  train(net, training_set, 1, 1e-4f);
  const Tensor example = test_set.batch(0, 1).input;
  const IntegerModel model = quant::convert(net, example);
  write_c99(".", export_c99(model.program(), {.name = "finetuned"}));
  std::cout << "accuracy after QAT: " << accuracy(net, test_set) << '\n';
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
