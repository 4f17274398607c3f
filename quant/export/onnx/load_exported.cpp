#include "quant/export/onnx/load_exported.hpp"

#include <algorithm>
#include <concepts>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/core/version.hpp"
#include "framework/integer/constant.hpp"
#include "framework/integer/program_file.hpp"
#include "framework/io/json.hpp"
#include "layers/onnx/elements.hpp"
#include "layers/onnx/reader.hpp"
#include "quant/export/onnx/metadata.hpp"
#include "quant/export/onnx/qdq.hpp"

namespace quantrain {
namespace onnx_export {
namespace {

constexpr int64_t kMost32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kMostSteps = 1 << 14;
constexpr int64_t kMostShared = 64;  // bytes of constants that GraphBuilder shares
constexpr JsonLimits kLimits{.bytes = int64_t{64} << 20, .values = int64_t{1} << 23};

// --- whether two graphs are equal, but for the names of nodes

bool equal(const onnx::StoredTensor& a, const onnx::StoredTensor& b);
bool equal(const onnx::Attribute& a, const onnx::Attribute& b);
bool equal(const onnx::Node& a, const onnx::Node& b);
bool equal(const onnx::Dimension& a, const onnx::Dimension& b);
bool equal(const onnx::ValueInfo& a, const onnx::ValueInfo& b);
template <class T>
bool equal(const std::vector<T>& a, const std::vector<T>& b) {
  return std::ranges::equal(a, b, [](const T& x, const T& y) { return equal(x, y); });
}

bool equal(const onnx::StoredTensor& a, const onnx::StoredTensor& b) {
  return a.name == b.name && a.type == b.type && a.dims == b.dims &&
         std::ranges::equal(a.bytes.view, b.bytes.view);
}

bool equal(const onnx::Attribute& a, const onnx::Attribute& b) {
  const auto is_same = [&](const auto& value) {
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::equality_comparable<T>) {
      const T* const other = std::get_if<T>(&b.value);
      return other != nullptr && *other == value;
    } else {
      return false;  // exported graphs have no others
    }
  };
  return a.name == b.name && std::visit(is_same, a.value);
}

bool equal(const onnx::Node& a, const onnx::Node& b) {
  return a.op_type == b.op_type && a.domain == b.domain && a.inputs == b.inputs &&
         a.outputs == b.outputs && equal(a.attributes, b.attributes);
}

bool equal(const onnx::Dimension& a, const onnx::Dimension& b) { return a.value == b.value; }

bool equal(const onnx::ValueInfo& a, const onnx::ValueInfo& b) {
  return a.name == b.name && a.type == b.type && equal(a.dims, b.dims);
}

bool equal(const onnx::Graph& a, const onnx::Graph& b) {
  return equal(a.nodes, b.nodes) && equal(a.initializers, b.initializers) &&
         equal(a.inputs, b.inputs) && equal(a.outputs, b.outputs);
}

/// In any order, so that tools may write them as they like. A key that comes twice is a difference.
bool same_metadata(const onnx::Model& a, const onnx::Model& b) {
  using Entry = std::pair<std::string_view, std::string_view>;
  const auto sorted = [](const onnx::Model& model) {
    std::vector<Entry> entries(model.metadata.begin(), model.metadata.end());
    std::ranges::sort(entries);
    return entries;
  };
  return sorted(a) == sorted(b);
}

// --- the program

JsonDocument parse(const std::string& text, const std::string& path) {
  try {
    return JsonDocument(text, kLimits);
  } catch (const JsonDocument::Malformed& what) {
    throw DataError("onnx", path, ": the metadata \"", kExportKey, "\" ", what.text);
  }
}

class Loader {
 public:
  Loader(const onnx::Model& model, const std::string& path)
      : model_(model), path_(path), error_(json_error<DataError>(path)) {
    for (const auto& [key, text] : model.metadata) metadata_[key] = text;
    for (const char* const key : {kProgramKey, kExportKey, kHashKey}) {
      if (!metadata_.contains(key)) {
        throw DataError("onnx",
                        path,
                        ": export_onnx() did not write it from an integer program: it has no "
                        "metadata \"",
                        key,
                        "\"");
      }
    }
  }

  integer::Program program(std::optional<int64_t> memory_limit) {
    for (const onnx::StoredTensor& tensor : model_.graph.initializers)
      initializers_[tensor.name] = &tensor;
    // Bytes hold two elements of 4 bits. Constants of a few bytes may be the weights of many steps.
    left_ = 2 * model_.file_bytes + (int64_t{1} << 20);
    const JsonDocument document = parse(metadata_[kExportKey], path_);
    JsonReader reader(document.root(), error_);
    options_ = options(reader);
    TensorFile file;
    JsonReader format(reader.at("format"), error_);
    for (const auto& [key, value] : reader.at("format").members())
      file.metadata[std::string(key)] = format.text(key);
    file.metadata["network"] = metadata_[kProgramKey];
    for (const auto& [key, text] : metadata_) {
      if (!key.starts_with(kReserved)) file.metadata[key] = text;
    }
    JsonReader types(reader.at("types"), error_);
    JsonReader numbers(reader.at("numbers"), error_);
    for (const auto& [name, value] : reader.at("types").members())
      add_numbers(file, std::string(name), types.text(name), numbers);
    types.finish();
    numbers.finish();
    for (const JsonValue weights : reader.list("weights", kMostSteps)) add_weights(file, weights);
    reader.finish();
    return integer::program_from(file, path_, memory_limit);
  }

  /// Throws: DataError unless the graph is the one that the program is exported as.
  void check(const integer::Program& program) const {
    refuse_large_constants(program);
    const onnx::Model again = onnx_model(program, options_);
    if (again.opset() != model_.opset() || !same_metadata(again, model_) ||
        !equal(again.graph, model_.graph)) {
      refuse();
    }
  }

 private:
  [[noreturn]] void refuse() const {
    throw DataError("onnx",
                    path_,
                    ": the graph is not the one that its metadata describe: it was changed after "
                    "the export, or version ",
                    model_.producer_version,
                    " exported it, and this is ",
                    version(),
                    ": export it again");
  }

  /// An exact pool has a one for each element of its window, and multipliers for each of its pixels
  /// if its windows have several sizes: the program names few numbers, and the file must have all.
  void refuse_large_constants(const integer::Program& program) const {
    int64_t left = model_.file_bytes;
    for (const integer::Step& step : program.steps) {
      const auto* const pool = std::get_if<integer::QuantizedAvgPool2d>(&step.operation);
      if (pool == nullptr) continue;
      const kernels::Conv2dShape& s = pool->shape;
      // Few ones are shared, and a pool in floats has none.
      const int64_t window = s.kh * s.kw;
      if (window > (options_.form == OnnxForm::kExact ? kMostShared : kMostSummed)) left -= window;
      if (pool->means.size() > 1 && s.oh() * s.ow() > model_.file_bytes) refuse();
      if (left < 0) refuse();
    }
  }

  OnnxExportOptions options(JsonReader& reader) const {
    return {.form = static_cast<OnnxForm>(reader.integer("form", 0, 1)),
            .input = static_cast<OnnxInput>(reader.integer("input", 0, 1)),
            .output = static_cast<OnnxOutput>(reader.integer("output", 0, 2)),
            .layout = static_cast<OnnxLayout>(reader.integer("layout", 0, 1)),
            .int4_weights = reader.boolean("int4_weights"),
            .all_steps = reader.boolean("all_steps")};
  }

  template <class T>
  void add(TensorFile& file, const std::string& name, JsonReader& numbers) const {
    const std::vector<int64_t> wide = numbers.integers(
        name, kLimits.values, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    const std::vector<T> values(wide.begin(), wide.end());
    file.add<T>(name, {std::ssize(values)}, values);
  }

  void add_numbers(TensorFile& file,
                   const std::string& name,
                   const std::string& type,
                   JsonReader& numbers) const {
    if (type == "I32") return add<int32_t>(file, name, numbers);
    if (type == "I8") return add<int8_t>(file, name, numbers);
    if (type == "U8") return add<uint8_t>(file, name, numbers);
    throw DataError("onnx", path_, ": \"", name, "\" has the unknown type \"", type, "\"");
  }

  void add_weights(TensorFile& file, const JsonValue& json) {
    JsonReader reader(json, error_);
    if (reader.has("step")) refuse();  // early versions of 0.2 named steps instead of constants
    const int64_t constant = reader.integer("constant", 0, kMost32);
    const auto bits = static_cast<int>(reader.integer("bits", kLeastBits, kMostBits));
    const auto order = static_cast<WeightOrder>(reader.integer("order", 0, 2));
    const std::string name = reader.text("initializer");
    reader.finish();
    const auto found = initializers_.find(name);
    if (found == initializers_.end())
      throw DataError("onnx", path_, ": there is no initializer \"", name, "\"");
    const onnx::StoredTensor& stored = *found->second;
    left_ -= stored.elements();
    if (left_ < 0)
      throw DataError("onnx", path_, ": \"", name, "\" is the weights of too many constants");
    const std::vector<uint8_t> packed = integer::pack_codes(weights(stored, order), bits);
    file.add<uint8_t>("constants." + std::to_string(constant), {std::ssize(packed)}, packed);
  }

  /// The inverse of ordered_weights().
  std::vector<int8_t> weights(const onnx::StoredTensor& stored, WeightOrder order) const {
    const std::vector<int64_t>& dims = stored.dims;
    const bool is_unsigned = stored.type == onnx::ElementType::kUint8;
    const bool is_signed =
        stored.type == onnx::ElementType::kInt8 || stored.type == onnx::ElementType::kInt4;
    if (dims.size() != (order == WeightOrder::kConvolution ? 4 : 2) ||
        !(is_unsigned || is_signed) || stored.elements() == 0)
      throw DataError("onnx", path_, ": \"", stored.name, "\" cannot be weights");
    const std::vector<int64_t> values = onnx::integers_of(stored);
    const bool is_matrix = order == WeightOrder::kMatrix;
    const int64_t outputs = is_matrix ? dims[1] : dims[0], channels = is_matrix ? dims[0] : dims[1];
    const int64_t taps = std::ssize(values) / (outputs * channels);
    std::vector<int8_t> result(values.size());
    for (int64_t o = 0; o < outputs; ++o) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t tap = 0; tap < taps; ++tap) {
          const int64_t from = is_matrix ? c * outputs + o : (o * channels + c) * taps + tap;
          result[static_cast<size_t>((o * taps + tap) * channels + c)] =
              static_cast<int8_t>(values[static_cast<size_t>(from)] - (is_unsigned ? 128 : 0));
        }
      }
    }
    return result;
  }

  const onnx::Model& model_;
  const std::string& path_;
  JsonError error_;
  std::map<std::string, std::string> metadata_;
  OnnxExportOptions options_;
  std::unordered_map<std::string_view, const onnx::StoredTensor*> initializers_;
  int64_t left_ = 0;  // elements of weights that may still be read
};

}  // namespace
}  // namespace onnx_export

bool is_exported_onnx(const std::string& path) { return is_exported_onnx(onnx::read_model(path)); }

bool is_exported_onnx(const onnx::Model& model) {
  return std::ranges::any_of(
      model.metadata, [](const auto& entry) { return entry.first == onnx_export::kProgramKey; });
}

IntegerModel load_exported_onnx(const std::string& path, std::optional<int64_t> memory_limit) {
  return load_exported_onnx(onnx::read_model(path), memory_limit);
}

IntegerModel load_exported_onnx(const onnx::Model& model, std::optional<int64_t> memory_limit) {
  onnx_export::Loader loader(model, model.path);
  integer::Program program = loader.program(memory_limit);
  loader.check(program);
  return IntegerModel(std::move(program));
}

}  // namespace quantrain
