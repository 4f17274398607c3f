// Exports a network as ONNX: its integers in two forms, and its floats. docs/guide/onnx.md
#include <iostream>

#include "framework/core/error.hpp"
#include "framework/integer/integer_model.hpp"
#include "layers/network/trace.hpp"
#include "layers/onnx/export_onnx.hpp"
#include "quant/export/onnx/export_onnx.hpp"
#include "quant/export/onnx/load_exported.hpp"
#include "quant/export/onnx/qdq_differences.hpp"
#include "shapes.hpp"
#include "training.hpp"

int main() try {
  const IntegerModel model = IntegerModel::load("whole_model.safetensors");
  export_onnx(model.program(), "shapes_exact.onnx");
  export_onnx(model.program(), "shapes_qdq.onnx", {.form = OnnxForm::kQdq});

  const Dataset test_set = shapes(500, 2);
  const Batch batch = test_set.batch(0, 500);
  for (const QdqDifference& layer : qdq_differences(model.program(), batch.bytes()))
    std::cout << layer.layer << ": " << layer.different << " of " << layer.codes << " differ\n";

  const IntegerModel again = load_exported_onnx("shapes_exact.onnx");
  std::cout << "the same integers: " << (again.hash() == model.hash() ? "yes" : "no") << '\n';

  Sequential net = make_network();
  load(net, "float.safetensors");
  Network whole = trace(net, test_set.batch(0, 1).input);
  export_onnx(whole, "shapes_float.onnx");
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
