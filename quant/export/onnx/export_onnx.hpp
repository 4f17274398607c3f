#pragma once

#include <string>

#include "framework/integer/program.hpp"
#include "layers/onnx/forms.hpp"
#include "layers/onnx/model.hpp"

// An integer network as an .onnx file. layers/onnx/export_onnx.hpp exports networks of floats.
namespace quantrain {

/// How the integers are written.
enum class OnnxForm {
  /// Integer operators only. Every runtime that conforms to ONNX computes the engine's integers.
  kExact,
  /// QuantizeLinear and DequantizeLinear around operators of floats, which ONNX Runtime and others
  /// replace by integer kernels. These kernels round in float, so a few codes differ by 1:
  /// qdq_differences() counts them. Operations that would differ more stay exact.
  kQdq,
};

/// What an input takes.
enum class OnnxInput {
  kReal,   ///< float32, in the units of the data source; the file quantizes them by (3) and (20)
  kCodes,  ///< uint8 codes, such as the bytes of images
};

/// What an output gives.
enum class OnnxOutput {
  kReal,      ///< float32: the reals that IntegerModel::run() gives
  kIntegers,  ///< uint8 codes, as stored, or int32 accumulators
  kClasses,   ///< int64: the index of the largest element along the channels
};

struct OnnxExportOptions {
  OnnxForm form = OnnxForm::kExact;
  OnnxInput input = OnnxInput::kReal;
  OnnxOutput output = OnnxOutput::kReal;
  OnnxLayout layout = OnnxLayout::kChannelsFirst;
  /// kQdq only: weights of up to 4 bits are stored as int4, two in a byte. Needs operator set 21.
  bool int4_weights = false;
  /// What each step computes is an output, too: its integers in the program's order of elements,
  /// named "step0", "step1", ... For comparisons, layer by layer.
  bool all_steps = false;

  friend bool operator==(const OnnxExportOptions&, const OnnxExportOptions&) = default;
};

/// The network as an ONNX model, of the lowest operator set that has its operators: 12; 13 for
/// kQdq; 21 with int4 weights. The number of samples is open. Inputs are named "input" and outputs
/// "output", followed by their number if there are several; values and nodes have the names of
/// layers. The model's metadata are the program's, and entries named "quantrain.*", from which
/// load_exported_onnx() makes the program again.
/// Throws: ExportError naming the layer if the options do not fit the program: classes of an output
/// without axes, int4 weights with kExact, or metadata of a reserved name; what
/// integer::validate() throws.
onnx::Model onnx_model(const integer::Program& program, const OnnxExportOptions& options = {});

/// Writes onnx_model() to a file, completely or not at all.
///   export_onnx(model.program(), "digits.onnx", {.form = OnnxForm::kQdq});
/// Throws: as onnx_model(); ExportError if the file would exceed protobuf's 2 GiB; DataError if it
/// cannot be written.
void export_onnx(const integer::Program& program,
                 const std::string& path,
                 const OnnxExportOptions& options = {});

}  // namespace quantrain
