// Reads an .onnx file and imports it. A network that is not too large also runs; a quantized one is
// converted and planned, and the integers run, too.
#include "framework/core/error.hpp"
#include "fuzz/harness.hpp"
#include "fuzz/run_network.hpp"
#include "layers/onnx/import_onnx.hpp"
#include "layers/onnx/importer.hpp"
#include "layers/onnx/reader.hpp"
#include "layers/onnx/recognize.hpp"
#include "quant/import/onnx/float_graph.hpp"
#include "quant/import/onnx/import_quantized_onnx.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"

namespace quantrain::fuzz {
namespace {

/// Elements that the values of a run, and their axes, may have, so that a run takes little time and
/// memory. A file's author chooses its shapes; they are no fault of the reader.
constexpr int64_t kMostElements = int64_t{1} << 14;
constexpr int64_t kMostExtent = int64_t{1} << 10;

/// Imports a quantized network. What its file lacks is chosen anew.
bool accepts_quantized(const std::string& path) {
  quant::QuantizedOnnx imported =
      quant::import_quantized_onnx(path, {.choose_anew = true, .most_elements = kMostElements});
  Network& net = imported.network;
  const std::vector<Tensor> example = net.example();
  if (!imported.report.is_complete()) quant::calibrate(net, example);
  const quant::Plan plan = quant::plan(net, example);
  const IntegerModel model = quant::convert(net, example);
  if (!plan.convertible()) finding("the plan refuses what convert() converts");
  run_everywhere(model.program());
  return true;
}

}  // namespace

bool accepts(std::span<const uint8_t> input) {
  const onnx::Model model = onnx::parse_model(input, "input");
  for (const onnx::StoredTensor& tensor : model.graph.initializers) {
    const int64_t bits = tensor.elements() * onnx::bits_of(tensor.type);
    if (static_cast<int64_t>(tensor.bytes.view.size()) != (bits + 7) / 8)
      finding(tensor.name + " does not fill its shape");
  }
  const MemoryFile file(input);
  if (onnx::is_quantized(model.graph)) return accepts_quantized(file.path());
  Network network = import_onnx(file.path());

  onnx::Model recognized = model;
  recognized.graph = onnx::recognize(model.graph);
  onnx::Importer importer(recognized, {});
  importer.run();
  if (importer.largest_value() > kMostElements || importer.atoms().largest() > kMostExtent)
    return true;
  std::vector<Tensor> x;
  for (const NetworkInput& described : network.inputs()) {
    std::vector<int64_t> shape{2};
    shape.insert(shape.end(), described.shape.begin(), described.shape.end());
    x.push_back(Tensor::full(Shape(shape), 0.5f));
  }
  const NoGrad no_grad;
  network(x);
  return true;
}

}  // namespace quantrain::fuzz
