#include "quant/export/onnx/exact.hpp"

#include "quant/export/onnx/forms.hpp"

// The list of operations that have a form in integer operators. If one is missing here, this file
// does not compile.
namespace quantrain::onnx_export {
namespace {

struct Exact {
  Export& out;
  const std::vector<int>& x;
  int y;

  void operator()(const integer::Gather& op) const { exact_gather(out, op, x[0], y); }
  void operator()(const integer::QuantizedAdd& op) const { exact_add(out, op, x, y); }
  void operator()(const integer::QuantizedAvgPool2d& op) const { exact_avg_pool(out, op, x[0], y); }
  void operator()(const integer::QuantizedConcat& op) const { exact_concat(out, op, x, y); }
  void operator()(const integer::QuantizedConv2d& op) const { exact_convolution(out, op, x[0], y); }
  void operator()(const integer::QuantizedLinear& op) const { exact_linear(out, op, x[0], y); }
  void operator()(const integer::QuantizedLookup& op) const { exact_lookup(out, op, x[0], y); }
  void operator()(const integer::QuantizedMaxPool2d& op) const { exact_max_pool(out, op, x[0], y); }
  void operator()(const integer::QuantizedMul& op) const { exact_mul(out, op, x[0], x[1], y); }
  void operator()(const integer::QuantizedSoftmax& op) const { exact_softmax(out, op, x[0], y); }
  void operator()(const integer::View&) const { out.values.alias(x[0], y); }
};

}  // namespace

void add_exact(Export& out, const integer::Step& step) {
  std::visit(Exact{out, step.inputs, step.output}, step.operation);
}

}  // namespace quantrain::onnx_export
