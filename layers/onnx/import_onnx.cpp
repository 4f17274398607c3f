#include "layers/onnx/import_onnx.hpp"

#include <utility>

#include "layers/onnx/check_model.hpp"
#include "layers/onnx/importer.hpp"
#include "layers/onnx/reader.hpp"
#include "layers/onnx/recognize.hpp"

namespace quantrain {

Network import_onnx(const std::string& path, const OnnxOptions& options) {
  return import_onnx(onnx::read_model(path), options);
}

Network import_onnx(onnx::Model model, const OnnxOptions& options) {
  if (!options.outputs.empty()) {
    model.graph.outputs.clear();
    for (const std::string& name : options.outputs) model.graph.outputs.push_back({.name = name});
  }
  onnx::check_model(model);
  model.graph = onnx::recognize(model.graph);
  onnx::Importer importer(model, options.shapes, options.described_constants);
  importer.run();
  Network network(std::move(importer.parts()));
  network.eval();
  return network;
}

}  // namespace quantrain
