#include "quant/export/onnx/qdq.hpp"

namespace quantrain::onnx_export {

bool add_qdq(Export&, const integer::Step&) { return false; }

}  // namespace quantrain::onnx_export
