#include "quant/export/onnx/export_onnx.hpp"

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/version.hpp"
#include "layers/onnx/writer.hpp"
#include "quant/export/onnx/ends.hpp"
#include "quant/export/onnx/exact.hpp"
#include "quant/export/onnx/metadata.hpp"
#include "quant/export/onnx/qdq.hpp"

namespace quantrain {
namespace onnx_export {
namespace {

/// The lowest operator set: 12 has Clip of integers and MaxPool of bytes, 13 a scale for each
/// channel, 21 elements of 4 bits.
int64_t opset(const OnnxExportOptions& options) {
  if (options.form == OnnxForm::kExact) return 12;
  return options.int4_weights ? 21 : 13;
}

/// The lowest version of the format that has this operator set.
int64_t ir_version(int64_t opset) { return opset < 15 ? 7 : 10; }

}  // namespace
}  // namespace onnx_export

onnx::Model onnx_model(const integer::Program& program, const OnnxExportOptions& options) {
  using namespace onnx_export;
  integer::validate(program);
  if (options.int4_weights && options.form != OnnxForm::kQdq) {
    throw ExportError("onnx",
                      "int4 weights need OnnxForm::kQdq: ONNX has no integer products of them");
  }
  onnx::Model model;
  model.producer = "quantrain";
  model.producer_version = version();
  model.operator_sets = {{"", opset(options)}};
  model.ir_version = ir_version(opset(options));
  onnx::GraphBuilder graph;
  onnx::HeldValues values(program.values.size(), graph);
  Export out{.program = program,
             .graph = graph,
             .values = values,
             .opset = opset(options),
             .int4_weights = options.int4_weights};
  const bool gives_reals = options.output == OnnxOutput::kReal && !options.all_steps;
  add_inputs(out, options);
  for (const integer::Step& step : program.steps) {
    const std::string& name = program.value(step.output).name;
    graph.set_scope(name.empty() ? "step" + std::to_string(out.position) : name);
    if (options.form == OnnxForm::kExact || !add_qdq(out, step, gives_reals)) add_exact(out, step);
    ++out.position;
  }
  add_outputs(out, options);
  model.graph = graph.take();
  model.graph.name = "quantrain";
  add_metadata(model, out, options);
  return model;
}

void export_onnx(const integer::Program& program,
                 const std::string& path,
                 const OnnxExportOptions& options) {
  check_writable(path);
  onnx::write_model(path, onnx_model(program, options));
}

}  // namespace quantrain
