// Reads an .onnx file and imports it. A network that is not too large also runs.
#include "framework/core/error.hpp"
#include "fuzz/harness.hpp"
#include "layers/onnx/import_onnx.hpp"
#include "layers/onnx/importer.hpp"
#include "layers/onnx/reader.hpp"
#include "layers/onnx/recognize.hpp"

namespace quantrain::fuzz {
namespace {

/// Elements that the values of a run, and their axes, may have, so that a run takes little time and
/// memory. A file's author chooses its shapes; they are no fault of the reader.
constexpr int64_t kMostElements = int64_t{1} << 14;
constexpr int64_t kMostExtent = int64_t{1} << 10;

}  // namespace

bool accepts(std::span<const uint8_t> input) {
  const onnx::Model model = onnx::parse_model(input, "input");
  for (const onnx::StoredTensor& tensor : model.graph.initializers) {
    const int64_t bits = tensor.elements() * onnx::bits_of(tensor.type);
    if (static_cast<int64_t>(tensor.bytes.view.size()) != (bits + 7) / 8)
      finding(tensor.name + " does not fill its shape");
  }
  const MemoryFile file(input);
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
