#include "quant/export/onnx/metadata.hpp"

#include <iomanip>
#include <set>

#include "framework/core/error.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/integer/program_constants.hpp"
#include "framework/integer/program_file.hpp"
#include "framework/io/json_writer.hpp"

namespace quantrain::onnx_export {
namespace {

bool is_weight(const TensorFile::Entry& entry) {
  return entry.name.starts_with("constants.") && entry.dtype == DType::kU8;
}

template <class T>
void write_values(JsonWriter& json, const TensorFile& file, const std::string& name) {
  json.member(name, file.values<T>(name));
}

std::string export_text(const Export& exported,
                        const OnnxExportOptions& options,
                        const TensorFile& file) {
  const integer::ProgramConstants constants(exported.program);
  JsonWriter json;
  const auto weights = [&] {
    std::set<size_t> written;
    for (const StoredWeights& stored : exported.weights) {
      const integer::Operation& op = exported.program.steps[stored.step].operation;
      const integer::Constant& weight = integer::product(op)->weight;
      const size_t constant = constants.at(weight);
      if (!written.insert(constant).second) continue;
      json.object([&] {
        json.member("constant", constant);
        json.member("initializer", stored.initializer);
        json.member("order", static_cast<int>(stored.order));
        json.member("bits", weight.bits());
      });
    }
  };
  const auto numbers = [&] {
    for (const TensorFile::Entry& entry : file.entries()) {
      if (is_weight(entry)) continue;
      if (entry.dtype == DType::kI32) write_values<int32_t>(json, file, entry.name);
      if (entry.dtype == DType::kI8) write_values<int8_t>(json, file, entry.name);
      if (entry.dtype == DType::kU8) write_values<uint8_t>(json, file, entry.name);
    }
  };
  const auto types = [&] {
    for (const TensorFile::Entry& entry : file.entries())
      if (!is_weight(entry)) json.member(entry.name, dtype_name(entry.dtype));
  };
  const auto format = [&] {
    for (const char* const key : {"format", "version", "layout"})
      json.member(key, file.metadata_at(key));
  };
  json.object([&] {
    json.member("format", [&] { json.object(format); });
    json.member("form", static_cast<int>(options.form));
    json.member("input", static_cast<int>(options.input));
    json.member("output", static_cast<int>(options.output));
    json.member("layout", static_cast<int>(options.layout));
    json.member("int4_weights", options.int4_weights);
    json.member("all_steps", options.all_steps);
    json.member("weights", [&] { json.list(weights); });
    json.member("types", [&] { json.object(types); });
    json.member("numbers", [&] { json.object(numbers); });
  });
  return json.text();
}

}  // namespace

std::string hash_text(const integer::Program& program) {
  TextStream stream;
  stream << std::hex << std::setw(16) << std::setfill('0') << integer::content_hash(program);
  return stream.str();
}

void add_metadata(onnx::Model& model, const Export& exported, const OnnxExportOptions& options) {
  for (const auto& [key, text] : exported.program.metadata) {
    if (key.starts_with(kReserved))
      throw ExportError("onnx", "the program's metadata \"", key, "\" are reserved for the file");
    model.metadata.emplace_back(key, text);
  }
  const TensorFile file = integer::tensors_of(exported.program, "onnx");
  model.metadata.emplace_back(kHashKey, hash_text(exported.program));
  model.metadata.emplace_back(kExportKey, export_text(exported, options, file));
  model.metadata.emplace_back(kProgramKey, file.metadata_at("network"));
}

}  // namespace quantrain::onnx_export
