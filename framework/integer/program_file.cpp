#include "framework/integer/program_file.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/core/error.hpp"
#include "framework/integer/packed_weights.hpp"
#include "framework/io/format.hpp"
#include "framework/io/safetensors.hpp"

namespace quantrain::integer {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "quantrain-integer";
constexpr const char* kVersion = "2";

// --- writing

/// Writes the members of an operation: numbers to JSON, arrays to tensors.
class Writer {
 public:
  Writer(Json& json, TensorFile& file, std::string prefix)
      : json_(json), file_(file), prefix_(std::move(prefix)) {}

  void operator()(const char* name, int64_t value) { json_[name] = value; }
  void operator()(const char* name, int32_t value) { json_[name] = value; }
  void operator()(const char* name, const std::vector<int32_t>& values) {
    add<int32_t>(name, values);
  }
  void operator()(const char* name, const SharedArray<int32_t>& values) {
    if (!values.empty()) add<int32_t>(name, {values.data(), static_cast<size_t>(values.size())});
  }
  void bytes(const char* name, const std::vector<int32_t>& values) {
    std::vector<int8_t> narrow;
    for (const int32_t value : values) narrow.push_back(static_cast<int8_t>(value));
    add<int8_t>(name, narrow);
  }
  void weights(const char* name, const SharedArray<int8_t>& values, int bits) {
    json_["weights"] = values.size();
    add<uint8_t>(name, pack_weights(values, bits));
  }
  void operator()(const char* name, const CodeTable& table) { add<uint8_t>(name, table); }
  void operator()(const char* name, const StoredOutput& y) {
    json_[name] = Json{{"zero_point", y.zero_point}, {"lo", y.lo}, {"hi", y.hi}};
  }
  void operator()(const char* name, const std::optional<Requantization>& output) {
    if (!output) return;
    json_[name] = Json::object();
    Writer nested(json_[name], file_, prefix_ + name + ".");
    Requantization::describe(*output, nested);
  }
  void operator()(const char* name, const std::vector<QuantizedConcat::Part>& parts) {
    json_[name] = Json::array();
    for (const auto& part : parts) {
      Writer nested(json_[name].emplace_back(Json::object()), file_, prefix_);
      QuantizedConcat::Part::describe(part, nested);
    }
  }
  void operator()(const char* name, const std::vector<kernels::MeanMultiplier>& means) {
    json_[name] = Json::array();
    for (const auto& mean : means) {
      json_[name].push_back(
          {{"count", mean.count}, {"m0", mean.multiplier.m0}, {"shift", mean.multiplier.shift}});
    }
  }

 private:
  template <class T>
  void add(const char* name, std::span<const T> values) {
    file_.add<T>(prefix_ + name, {static_cast<int64_t>(values.size())}, values);
  }

  Json& json_;
  TensorFile& file_;
  std::string prefix_;
};

Json to_json(const QParams& params) {
  return {{"bits", params.type.bits},
          {"signed", params.type.is_signed},
          {"narrow", params.type.narrow},
          {"scale", static_cast<double>(params.scale[0])},
          {"zero_point", params.zero_point[0]}};
}

Json to_json(const Value& value) {
  Json json = {{"name", value.name},
               {"shape", std::vector<int64_t>(value.shape.begin(), value.shape.end())},
               {"node", value.node}};
  if (value.params) {
    json["codes"] = to_json(*value.params);
  } else {
    json["scale"] = value.scale;
  }
  if (!value.features.empty()) {
    // As doubles, which hold every float: as floats, JSON would round them.
    const auto numbers = [](const std::vector<float>& values) {
      return std::vector<double>(values.begin(), values.end());
    };
    json["features"] = {{"offset", numbers(value.features.offset)},
                        {"scale", numbers(value.features.scale)}};
  }
  return json;
}

// --- reading

using Parsed = nlohmann::json;  // finds members by search, not one after the other

/// A JSON object that is read member by member, each one range-checked; what was not asked for is
/// an error.
class Reader {
 public:
  Reader(const Parsed& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) throw DataError(where_, "not a JSON object");
  }
  const std::string& where() const { return where_; }

  bool has(const char* name) const { return json_.contains(name); }
  const Parsed& at(const char* name) {
    read_.insert(name);
    const auto found = json_.find(name);
    if (found == json_.end()) throw DataError(where_, "lacks \"", name, "\"");
    return *found;
  }
  int64_t integer(const char* name, int64_t lo, int64_t hi) {
    return integer(at(name), name, lo, hi);
  }
  int64_t integer(const Parsed& json, const char* name, int64_t lo, int64_t hi) const {
    if (!json.is_number_integer()) throw DataError(where_, "\"", name, "\" is no whole number");
    const bool large = json.is_number_unsigned() &&
                       json.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()};
    if (large || json.get<int64_t>() < lo || json.get<int64_t>() > hi) {
      throw DataError(where_, "\"", name, "\" is ", json.dump(), ", not in [", lo, ", ", hi, "]");
    }
    return json.get<int64_t>();
  }
  bool boolean(const char* name) {
    const Parsed& json = at(name);
    if (!json.is_boolean()) throw DataError(where_, "\"", name, "\" is neither true nor false");
    return json.get<bool>();
  }
  double real(const Parsed& json, const char* name) const {
    if (!json.is_number()) throw DataError(where_, "\"", name, "\" is no number");
    return json.get<double>();
  }
  std::vector<float> floats(const char* name) {
    std::vector<float> result;
    for (const Parsed& json : list(name, kMostEntries)) {
      const double value = real(json, name);
      if (!(std::abs(value) <= double{std::numeric_limits<float>::max()}))
        throw DataError(where_, "\"", name, "\" has ", json.dump(), ", which is no finite float");
      result.push_back(static_cast<float>(value));
    }
    return result;
  }
  std::string text(const char* name) {
    const Parsed& json = at(name);
    if (!json.is_string()) throw DataError(where_, "\"", name, "\" is no text");
    return json.get<std::string>();
  }
  const Parsed& list(const char* name, size_t most) {
    const Parsed& json = at(name);
    if (!json.is_array()) throw DataError(where_, "\"", name, "\" is no list");
    if (json.size() > most)
      throw DataError(where_, "\"", name, "\" has ", json.size(), " entries, at most ", most);
    return json;
  }
  std::vector<int> ids(const char* name) {
    std::vector<int> result;
    for (const Parsed& id : list(name, kMostEntries))
      result.push_back(static_cast<int>(integer(id, name, 0, kMostEntries)));
    return result;
  }
  void finish() const {
    for (const auto& [name, value] : json_.items()) {
      if (read_.count(name) == 0) throw DataError(where_, "has an unknown member \"", name, "\"");
    }
  }

  static constexpr size_t kMostEntries = 1 << 20;

 private:
  const Parsed& json_;
  std::string where_;
  std::set<std::string> read_;
};

constexpr int64_t kMost32 = std::numeric_limits<int32_t>::max();

/// Tensors of a file, each to be taken once.
class Tensors {
 public:
  explicit Tensors(const TensorFile& file) : file_(file) {}

  bool has(const std::string& name) const { return file_.contains(name); }
  template <class T>
  std::vector<T> take(const std::string& name) {
    taken_.insert(name);
    return file_.values<T>(name);
  }
  void finish() const {
    for (const TensorFile::Entry& entry : file_.entries()) {
      if (taken_.count(entry.name) == 0)
        throw DataError(entry.name, "a tensor that belongs to no layer");
    }
  }

 private:
  const TensorFile& file_;
  std::set<std::string> taken_;
};

/// Reads the members of an operation, the reverse of Writer.
class Members {
 public:
  Members(Reader& json, Tensors& tensors, std::string prefix)
      : json_(json), tensors_(tensors), prefix_(std::move(prefix)) {}

  void operator()(const char* name, int64_t& value) { value = json_.integer(name, 0, kMost32); }
  void operator()(const char* name, int32_t& value) {
    value = static_cast<int32_t>(json_.integer(name, 0, kMost32));
  }
  void operator()(const char* name, std::vector<int32_t>& values) {
    values = tensors_.take<int32_t>(prefix_ + name);
  }
  void operator()(const char* name, SharedArray<int32_t>& values) {
    if (tensors_.has(prefix_ + name)) values = tensors_.take<int32_t>(prefix_ + name);
  }
  void bytes(const char* name, std::vector<int32_t>& values) {
    const std::vector<int8_t> narrow = tensors_.take<int8_t>(prefix_ + name);
    values.assign(narrow.begin(), narrow.end());
  }
  void weights(const char* name, SharedArray<int8_t>& values, int bits) {
    if (bits < 2 || bits > 8)
      throw QuantError(json_.where(), "weights have 2 to 8 bits, got ", bits);
    const int64_t count = json_.integer("weights", 0, int64_t{1} << 40);
    const std::vector<uint8_t> bytes = tensors_.take<uint8_t>(prefix_ + name);
    if (static_cast<int64_t>(bytes.size()) != packed_weight_bytes(count, bits)) {
      throw DataError(
          json_.where(), bytes.size(), " bytes for ", count, " weights of ", bits, " bits");
    }
    values = unpack_weights(bytes, count, bits);
  }
  void operator()(const char* name, CodeTable& table) {
    const std::vector<uint8_t> bytes = tensors_.take<uint8_t>(prefix_ + name);
    if (bytes.size() != table.size())
      throw DataError(json_.where(), "a table of ", bytes.size(), " codes, expected 256");
    std::copy(bytes.begin(), bytes.end(), table.begin());
  }
  void operator()(const char* name, StoredOutput& y) {
    Reader nested(json_.at(name), json_.where());
    y.zero_point = static_cast<int32_t>(nested.integer("zero_point", 0, 255));
    y.lo = static_cast<int32_t>(nested.integer("lo", 0, 255));
    y.hi = static_cast<int32_t>(nested.integer("hi", 0, 255));
    nested.finish();
  }
  void operator()(const char* name, std::optional<Requantization>& output) {
    if (!json_.has(name)) return;
    Reader nested(json_.at(name), json_.where());
    Members members(nested, tensors_, prefix_ + name + ".");
    Requantization::describe(output.emplace(), members);
    nested.finish();
  }
  void operator()(const char* name, std::vector<QuantizedConcat::Part>& parts) {
    for (const Parsed& json : json_.list(name, Reader::kMostEntries)) {
      Reader nested(json, json_.where());
      Members members(nested, tensors_, prefix_);
      QuantizedConcat::Part::describe(parts.emplace_back(), members);
      nested.finish();
    }
  }
  void operator()(const char* name, std::vector<kernels::MeanMultiplier>& means) {
    for (const Parsed& json : json_.list(name, Reader::kMostEntries)) {
      Reader nested(json, json_.where());
      means.push_back({nested.integer("count", 1, kMost32),
                       {static_cast<int32_t>(nested.integer("m0", 0, kMost32)),
                        static_cast<int32_t>(nested.integer("shift", 0, 62))}});
      nested.finish();
    }
  }

 private:
  Reader& json_;
  Tensors& tensors_;
  std::string prefix_;
};

QParams params_from(const Parsed& json, const std::string& where) {
  Reader reader(json, where);
  QParams params;
  params.type.bits = static_cast<int>(reader.integer("bits", 2, 8));
  params.type.is_signed = reader.boolean("signed");
  params.type.narrow = reader.boolean("narrow");
  params.scale = {static_cast<float>(reader.real(reader.at("scale"), "scale"))};
  params.zero_point = {static_cast<int32_t>(reader.integer("zero_point", -128, 255))};
  reader.finish();
  return params;
}

InputFeatures features_from(const Parsed& json, const std::string& where) {
  Reader reader(json, where);
  InputFeatures features{reader.floats("offset"), reader.floats("scale")};
  reader.finish();
  if (features.empty()) throw DataError(where, "\"features\" are there and empty");
  return features;
}

Value value_from(const Parsed& json, size_t position) {
  Reader reader(json, "value " + std::to_string(position));
  Value value;
  value.name = reader.text("name");
  std::vector<int64_t> extents;
  for (const Parsed& extent : reader.list("shape", Shape::kMaxRank))
    extents.push_back(reader.integer(extent, "shape", 1, kMost32));
  value.shape = Shape(extents);
  value.node = static_cast<int>(reader.integer("node", -1, kMost32));
  if (reader.has("codes")) {
    value.params = params_from(reader.at("codes"), value.name);
  } else {
    for (const Parsed& scale : reader.list("scale", Reader::kMostEntries))
      value.scale.push_back(reader.real(scale, "scale"));
  }
  if (reader.has("features")) value.features = features_from(reader.at("features"), value.name);
  reader.finish();
  return value;
}

Step step_from(const Parsed& json, size_t position, Tensors& tensors) {
  Reader reader(json, "step " + std::to_string(position));
  Step step;
  const std::string name = reader.text("type");
  step.inputs = reader.ids("inputs");
  step.output = static_cast<int>(reader.integer("output", 0, kMost32));
  Reader numbers(reader.at("members"), reader.where());
  Members members(numbers, tensors, std::to_string(position) + ".");
  bool known = false;
  for_each_type([&](auto* null) {
    using Op = std::decay_t<decltype(*null)>;
    if (name != Op::kType) return;
    known = true;
    Op op;
    Op::describe(op, members);
    step.operation = std::move(op);
  });
  if (!known) throw DataError(reader.where(), "unknown type of layer \"", name, "\"");
  numbers.finish();
  reader.finish();
  return step;
}

/// Files of version 1 hold what the network's layers were, not what they compute.
void check_version(const TensorFile& file, const std::string& where) {
  const auto is = [&](const char* key, const char* value) {
    const auto entry = file.metadata.find(key);
    return entry != file.metadata.end() && entry->second == value;
  };
  if (is("format", kFormat) && is("version", "1")) {
    throw DataError("load",
                    where,
                    ": the file is of an older version, \"1\": convert the trained network again "
                    "and save it");
  }
}

Program program_from(const TensorFile& file, const std::string& where) {
  check_version(file, where);
  check_format(where, file, kFormat, kVersion);
  const std::string& network = file.metadata_at("network");
  const char* const text = network.data();
  const Parsed json = Parsed::parse(text, text + network.size(), nullptr, false);
  if (json.is_discarded()) throw DataError(where, "the network is not JSON");
  Program program;
  try {
    Reader reader(json, where);
    Tensors tensors(file);
    for (const Parsed& value : reader.list("values", Reader::kMostEntries))
      program.values.push_back(value_from(value, program.values.size()));
    program.inputs = reader.ids("inputs");
    program.outputs = reader.ids("outputs");
    for (const Parsed& step : reader.list("steps", Reader::kMostEntries))
      program.steps.push_back(step_from(step, program.steps.size(), tensors));
    reader.finish();
    tensors.finish();
    program.metadata = file.metadata;
    for (const char* own : {"format", "version", "layout", "network"}) program.metadata.erase(own);
  } catch (const nlohmann::json::exception& error) {
    throw DataError(where, "the network is not as it should be: ", error.what());
  }
  validate(program);
  return program;
}

}  // namespace

void save_program(const std::string& path, const Program& program) {
  TensorFile file;
  set_format(file, kFormat, kVersion);
  file.metadata["network"] = "";
  for (const auto& [key, value] : program.metadata) {
    if (!file.metadata.emplace(key, value).second)
      throw DataError("save", path, ": \"", key, "\" is the file's to say, not the caller's");
  }
  Json network = {{"values", Json::array()},
                  {"inputs", program.inputs},
                  {"outputs", program.outputs},
                  {"steps", Json::array()}};
  for (const Value& value : program.values) network["values"].push_back(to_json(value));
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    Json members = Json::object();
    Writer writer(members, file, std::to_string(i) + ".");
    std::visit([&](const auto& op) { op.describe(op, writer); }, step.operation);
    network["steps"].push_back({{"type", std::string(type(step.operation))},
                                {"inputs", step.inputs},
                                {"output", step.output},
                                {"members", std::move(members)}});
  }
  try {
    file.metadata["network"] = network.dump();
  } catch (const nlohmann::json::exception& error) {
    throw DataError(path, "a layer's name cannot be written as JSON: ", error.what());
  }
  save_safetensors(path, file);
}

Program load_program(const std::string& path) { return program_from(load_safetensors(path), path); }

Program parse_program(std::span<const uint8_t> file, std::string_view where) {
  return program_from(parse_safetensors(file, where), std::string(where));
}

}  // namespace quantrain::integer
