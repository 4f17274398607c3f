#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "layers/network/network.hpp"
#include "layers/onnx/import_onnx.hpp"
#include "quant/prepare/prepare.hpp"

namespace quantrain::quant {

struct QuantizedOnnxOptions {
  OnnxOptions onnx{};
  /// Real values of the lowest and highest code of inputs that the file does not quantize, or not
  /// to 8 bits, by their names.
  std::map<std::string, Range> ranges{};
  /// Whether to choose anew what the file does not say, or says in a way that cannot be kept.
  /// Otherwise, import_quantized_onnx() refuses the file and names all of that. Ranges of
  /// activations then come from calibrate() or training, and scales of weights from the weights.
  bool choose_anew = false;
  /// The import runs one sample. It refuses networks whose values have more elements than this in
  /// one sample, all values together.
  int64_t most_elements = int64_t{1} << 26;
  /// How to quantize what is chosen anew.
  QConfig config = QConfig::int8();
};

/// What became of one quantizer of the file, or of one that the file lacks.
struct QuantizedOnnxRow {
  enum Kind {
    kInput,
    kWeights,
    kActivation,
    kSums,  ///< an output that keeps its integer sums, because the file does not quantize it
  };
  std::string layer;  ///< path of the input or layer
  Kind kind = kActivation;
  bool is_kept = true;  ///< the parameters are those of the file; else they are chosen anew
  QParams params{};     ///< if they are kept
  std::string note{};   ///< why they are chosen anew, or what differs from the file
};

struct QuantizedOnnxReport {
  std::string dialect;  ///< "QDQ", "QOperator" or "QONNX"; or several
  std::vector<QuantizedOnnxRow> rows{};

  /// Whether every parameter is the file's. Then convert() gives integers at once. Otherwise,
  /// calibrate() or training comes first.
  bool is_complete() const;
};

/// Prints a line for each row.
std::ostream& operator<<(std::ostream& stream, const QuantizedOnnxReport& report);

struct QuantizedOnnx {
  Network network;
  QuantizedOnnxReport report;
};

/// Whether import_quantized_onnx() is the reader for this file: it has quantizers or operators of
/// codes.
/// Throws: DataError naming the path if it is no ONNX file.
bool is_quantized_onnx(const std::string& path);

/// Reads a network that is quantized already from an .onnx file, and returns it as a prepared
/// network whose scales, zero points and bits are those of the file. convert() makes integers of it
/// at once, and QAT goes on from there. Given parameters stay as they are while weights train.
/// Layout, names, shapes and outputs: as import_onnx().
/// Dialects: QDQ (QuantizeLinear and DequantizeLinear, as ONNX Runtime, PyTorch, Brevitas and
/// tf2onnx write them; Clip for fewer bits; codes of 4 and 8 bits), QOperator (QLinearConv,
/// QLinearMatMul, and of com.microsoft: QGemm, QLinearAdd, QLinearMul, QLinearAveragePool,
/// QLinearGlobalAveragePool, QLinearReduceMean, QLinearConcat, QLinearSigmoid, QLinearLeakyRelu,
/// QLinearSoftmax), QONNX (Quant; BipolarQuant of weights).
/// Codes: activations have the codes of the file; an input of signed codes gets unsigned ones, 128
/// larger. Weights have the codes of the file without zero points, if those fit; a batch norm after
/// quantized weights is folded into them, exactly. A bias has the scale of the products (6).
/// Arithmetic: that of docs/quantization.md. Engines that scale sums by floats give codes that
/// differ by 1 where they round differently.
/// Outputs that the file quantizes have its codes; others keep their integer sums.
/// NetworkInput::range of each input gives exactly the file's parameters: batches with this range
/// are encoded as the file says.
/// The file is untrusted: see SECURITY.md.
/// Throws: as import_onnx() and prepare_qat(); DataError if the file has no quantizer, or that lists
/// each quantized operator that is not read, with the nodes that use it (dynamic quantization,
/// integer sums, a scale for each channel of a computed value, 1 and 16 bits, Trunc); QuantError
/// that lists what would have to be chosen anew, unless the options allow it, or if an input has no
/// range; DataError if a range is given for what is no input, or beyond most_elements.
/// Source: github.com/onnx/onnx, docs/Operators.md; github.com/microsoft/onnxruntime,
/// docs/ContribOperators.md; github.com/fastmachinelearning/qonnx, docs/qonnx-custom-ops.
QuantizedOnnx import_quantized_onnx(const std::string& path,
                                    const QuantizedOnnxOptions& options = {});

}  // namespace quantrain::quant
