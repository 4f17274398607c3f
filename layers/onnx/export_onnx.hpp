#pragma once

#include <string>
#include <vector>

#include "layers/network/network.hpp"
#include "layers/onnx/forms.hpp"
#include "layers/onnx/model.hpp"

// A network of floats as an .onnx file. quant/export/onnx/export_onnx.hpp exports integer programs.
namespace quantrain {

struct OnnxFloatOptions {
  OnnxLayout layout = OnnxLayout::kChannelsFirst;
};

/// What the network computes in evaluation mode, as an ONNX model of operator set 13. Any module
/// will do: its operations are recorded on the examples, batches [N, ...], whose shapes are those
/// of the file; the number of samples is open. Weights have the names of parameters and ONNX's
/// order of axes; nodes have the names of layers. An output [N, L, C] has its channels first only
/// if a layer for signals computes it. The file takes what the layers take: of an input with
/// features, z of (20). Runtimes sum in other orders, so results agree to about 1e-6 of their size.
/// import_onnx() makes the same network of a file with channels first.
/// Throws: ExportError that lists each operation that has no form, with the layers that use it, or
/// if an operation mixes samples, or the network is prepared for quantization: export what
/// convert() gives; what record_graph() throws.
onnx::Model onnx_model(Module& net,
                       const std::vector<Tensor>& examples,
                       const OnnxFloatOptions& options = {});
/// The same for a Network, with the names of its inputs and outputs, its metadata and, as
/// "classes", the names of its classes.
onnx::Model onnx_model(Network& net, const OnnxFloatOptions& options = {});

/// Writes onnx_model() to a file, completely or not at all.
///   export_onnx(net, "digits.onnx");
/// Throws: as onnx_model(); ExportError if the file would exceed protobuf's 2 GiB; DataError if it
/// cannot be written.
void export_onnx(Module& net,
                 const std::vector<Tensor>& examples,
                 const std::string& path,
                 const OnnxFloatOptions& options = {});
void export_onnx(Network& net, const std::string& path, const OnnxFloatOptions& options = {});

}  // namespace quantrain
