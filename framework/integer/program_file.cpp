#include "framework/integer/program_file.hpp"

#include <limits>
#include <set>

#include "framework/core/error.hpp"
#include "framework/integer/memory_plan.hpp"
#include "framework/integer/program_constants.hpp"
#include "framework/integer/program_format.hpp"
#include "framework/io/format.hpp"
#include "framework/io/json.hpp"
#include "framework/io/safetensors.hpp"

namespace quantrain::integer {
namespace {

// Limits for one network, because the time of validate() and plan_memory() is quadratic.
constexpr int64_t kMostSteps = 1 << 14;
constexpr int64_t kMostEntries = 1 << 20;
constexpr int64_t kMost32 = std::numeric_limits<int32_t>::max();

/// Reads a JSON object of the file's network. Errors name the object by `where`.
class Reader : public JsonReader {
 public:
  Reader(JsonValue json, const std::string& where)
      : JsonReader(json, json_error<DataError>(where)), where_(where) {}
  const std::string& where() const { return where_; }
  std::vector<int> ids(std::string_view name) {
    const std::vector<int64_t> ids = integers(name, kMostSteps, 0, kMost32);
    return {ids.begin(), ids.end()};
  }

 private:
  std::string where_;
};

/// The tensors of a file. finish() checks that each was taken.
class Tensors {
 public:
  explicit Tensors(const TensorFile& file) : file_(file) {}

  bool has(const std::string& name) const { return file_.contains(name); }
  template <class T>
  std::vector<T> take(const std::string& name) {
    taken_.insert(name);
    const Shape& shape = file_.at(name).shape;
    if (shape.rank() != 1 || shape[0] == 0)
      throw DataError(name, "has shape ", shape, ", expected [n] with n at least 1");
    return file_.values<T>(name);
  }
  void finish() const {
    for (const TensorFile::Entry& entry : file_.entries()) {
      if (taken_.count(entry.name) == 0)
        throw DataError(entry.name, "the tensor does not belong to any layer");
    }
  }

 private:
  const TensorFile& file_;
  std::set<std::string> taken_;
};

/// The constants of a file. finish() checks that a step uses each.
class Constants {
 public:
  /// `list` may be missing in `network`.
  Constants(Reader& network, Tensors& tensors) {
    if (!network.has("constants")) return;
    for (const JsonValue json : network.list("constants", 2 * kMostSteps))
      entries_.push_back(read(json, constant_name(entries_.size()), tensors));
    used_.assign(entries_.size(), false);
  }
  void take(int64_t position, Constant& constant, const std::string& where) {
    constant = get(position, where).codes;
    if (constant.empty()) refuse(position, where, "integers of 1 to 8 bits");
  }
  void take(int64_t position, SharedArray<int32_t>& numbers, const std::string& where) {
    numbers = get(position, where).numbers;
    if (numbers.empty()) refuse(position, where, "integers of 32 bits");
  }
  void finish() const {
    for (size_t i = 0; i < used_.size(); ++i)
      if (!used_[i]) throw DataError(constant_name(i), "no layer reads the constant");
  }

 private:
  static ProgramConstants::Entry read(JsonValue json, const std::string& name, Tensors& tensors) {
    Reader reader(json, name);
    const int64_t bits = reader.integer("bits", kLeastBits, 32);
    const int64_t count = reader.integer("count", 1, int64_t{1} << 40);
    reader.finish();
    if (bits == 32) {
      std::vector<int32_t> numbers = tensors.take<int32_t>(name);
      check_size(name, std::ssize(numbers), count, count, bits);
      return {.numbers = std::move(numbers)};
    }
    check_weight_bits(bits, name);
    std::vector<uint8_t> packed = tensors.take<uint8_t>(name);
    const auto narrow = static_cast<int>(bits);
    check_size(name, std::ssize(packed), packed_bytes(count, narrow), count, bits);
    if (const int64_t last = count * bits % 8; last != 0 && packed.back() >> last != 0)
      throw DataError(name, "the bits after the last integer are not 0");
    return {.codes = Constant(SharedArray<uint8_t>(std::move(packed)), count, narrow)};
  }
  static void check_size(
      const std::string& name, int64_t size, int64_t expected, int64_t count, int64_t bits) {
    if (size == expected) return;
    throw DataError(name,
                    size,
                    " elements, expected ",
                    expected,
                    " for ",
                    count,
                    " integers of ",
                    bits,
                    " bits");
  }
  const ProgramConstants::Entry& get(int64_t position, const std::string& where) {
    if (position >= std::ssize(entries_))
      throw DataError(where, "constant ", position, " does not exist");
    used_[static_cast<size_t>(position)] = true;
    return entries_[static_cast<size_t>(position)];
  }
  [[noreturn]] static void refuse(int64_t position,
                                  const std::string& where,
                                  const char* expected) {
    throw DataError(where, "constant ", position, " is not ", expected);
  }

  std::vector<ProgramConstants::Entry> entries_;
  std::vector<bool> used_;
};

/// Reads the members of an operation. The inverse of Writer.
class Members {
 public:
  Members(Reader& json, Tensors& tensors, Constants& constants, std::string prefix)
      : json_(json), tensors_(tensors), constants_(constants), prefix_(std::move(prefix)) {}

  void operator()(const char* name, int64_t& value) { value = json_.integer(name, 0, kMost32); }
  void operator()(const char* name, int32_t& value) {
    value = static_cast<int32_t>(json_.integer(name, 0, kMost32));
  }
  [[gnu::noinline]] void optional(const char* name, int64_t& value, int64_t usual) {
    const int64_t least = usual == 0 ? -kMostExtent : 0;
    value = json_.has(name) ? json_.integer(name, least, kMost32) : usual;
  }
  bool are_two(const char* name, auto& operands) {
    if (json_.has(name)) return false;
    operands.resize(2);
    return true;
  }
  void operator()(const char* name, std::vector<int32_t>& values) {
    values = tensors_.take<int32_t>(prefix_ + name);
  }
  void operator()(const char* name, SharedArray<int32_t>& values) {
    if (json_.has(name)) {
      constants_.take(json_.integer(name, 0, kMost32), values, json_.where());
    } else if (tensors_.has(prefix_ + name)) {  // of early files
      values = tensors_.take<int32_t>(prefix_ + name);
    }
  }
  void words(const char* name, SharedArray<int32_t>& values) {
    values = tensors_.take<int32_t>(prefix_ + name);
  }
  void bytes(const char* name, SharedArray<int32_t>& values) {
    const std::vector<int8_t> narrow = tensors_.take<int8_t>(prefix_ + name);
    values = std::vector<int32_t>(narrow.begin(), narrow.end());
  }
  void operator()(const char* name, Constant& constant) {
    if (!json_.has("weights"))
      return constants_.take(json_.integer(name, 0, kMost32), constant, json_.where());
    // Early files store the weights of each step in fields of 2, 4 or 8 bits.
    const auto bits = static_cast<int>(json_.integer("weight_bits", 2, 8));
    const int width = bits == 2 ? 2 : bits <= 4 ? 4 : 8;
    const int64_t count = json_.integer("weights", 0, int64_t{1} << 40);
    const std::vector<uint8_t> bytes = tensors_.take<uint8_t>(prefix_ + name);
    if (std::ssize(bytes) != packed_bytes(count, width)) {
      throw DataError(
          json_.where(), bytes.size(), " bytes for ", count, " weights of ", bits, " bits");
    }
    std::vector<int8_t> codes(static_cast<size_t>(count));
    unpack_codes(bytes, width, 0, count, codes.data());
    constant = {std::move(codes), bits};
  }
  void operator()(const char* name, std::vector<uint8_t>& values) {
    values = tensors_.take<uint8_t>(prefix_ + name);
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
    Members members(nested, tensors_, constants_, prefix_ + name + ".");
    Requantization::describe(output.emplace(), members);
    nested.finish();
  }
  template <class Entry>
  void operator()(const char* name, std::vector<Entry>& entries) {
    for (const JsonValue json : json_.list(name, kMostSteps)) {
      Reader nested(json, json_.where());
      Members members(nested,
                      tensors_,
                      constants_,
                      prefix_ + name + "." + std::to_string(entries.size()) + ".");
      Entry::describe(entries.emplace_back(), members);
      nested.finish();
    }
  }
  void operator()(const char* name, std::vector<kernels::MeanMultiplier>& means) {
    for (const JsonValue json : json_.list(name, QuantizedAvgPool2d::kMostCounts)) {
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
  Constants& constants_;
  std::string prefix_;
};

QParams params_from(JsonValue json, const std::string& where) {
  Reader reader(json, where);
  QParams params;
  params.type.bits = static_cast<int>(reader.integer("bits", kLeastBits, kMostBits));
  params.type.is_signed = reader.boolean("signed");
  params.type.narrow = reader.boolean("narrow");
  params.scale = {reader.real32("scale")};
  params.zero_point = {static_cast<int32_t>(reader.integer("zero_point", -128, 255))};
  reader.finish();
  return params;
}

InputFeatures features_from(JsonValue json, const std::string& where) {
  Reader reader(json, where);
  InputFeatures features{reader.reals32("offset", kMostEntries),
                         reader.reals32("scale", kMostEntries)};
  reader.finish();
  if (features.empty()) throw DataError(where, "\"features\" must not be empty");
  return features;
}

Value value_from(JsonValue json, size_t position) {
  Reader reader(json, "value " + std::to_string(position));
  Value value;
  value.name = reader.text("name");
  value.shape = Shape(reader.integers("shape", Shape::kMaxRank, 1, kMost32));
  if (reader.has("node")) reader.integer("node", -1, kMost32);  // of early files; has no meaning
  if (reader.has("codes")) {
    value.params = params_from(reader.at("codes"), value.name);
  } else {
    value.scale = reader.reals("scale", kMostEntries);
  }
  if (reader.has("features")) value.features = features_from(reader.at("features"), value.name);
  reader.finish();
  return value;
}

Step step_from(JsonValue json, size_t position, Tensors& tensors, Constants& constants) {
  Reader reader(json, "step " + std::to_string(position));
  Step step;
  const std::string name = reader.text("type");
  step.inputs = reader.ids("inputs");
  step.output = static_cast<int>(reader.integer("output", 0, kMost32));
  Reader numbers(reader.at("members"), reader.where());
  Members members(numbers, tensors, constants, std::to_string(position) + ".");
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
  if (reader.has("origin")) {
    Reader origin(reader.at("origin"), reader.where());
    for (const auto& [key, value] : reader.at("origin").members())
      step.origin.about[std::string(key)] = origin.text(key);
    origin.finish();
  }
  if (reader.has("weight_scale"))
    step.origin.weight_scale = reader.reals32("weight_scale", kMostEntries);
  reader.finish();
  return step;
}

/// Refuses files of version 1, which store the network's layers instead of its integer operations.
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

void check_metadata(const TensorFile& file, const std::string& where) {
  check_version(file, where);
  check_format(where, file, kFormat, kVersion);
}

JsonDocument network_of(const TensorFile& file, const std::string& where) {
  try {
    return JsonDocument(file.metadata_at("network"));
  } catch (const JsonDocument::Malformed& what) {
    throw DataError(where, "the network ", what.text);
  }
}

int64_t bytes_of(const TensorFile& file) {
  size_t bytes = file.metadata_at("network").size();
  for (const TensorFile::Entry& entry : file.entries()) bytes += entry.bytes.size();
  return static_cast<int64_t>(bytes);
}

}  // namespace

Program program_from(const TensorFile& file,
                     const std::string& where,
                     std::optional<int64_t> limit,
                     KeepWeights keep) {
  check_metadata(file, where);
  const JsonDocument network = network_of(file, where);
  Program program;
  Reader reader(network.root(), where);
  Tensors tensors(file);
  Constants constants(reader, tensors);
  // Exactly as many as there are: a model keeps them.
  const std::vector<JsonValue> values = reader.list("values", kMostSteps);
  program.values.reserve(values.size());
  for (const JsonValue value : values)
    program.values.push_back(value_from(value, program.values.size()));
  program.inputs = reader.ids("inputs");
  program.outputs = reader.ids("outputs");
  const std::vector<JsonValue> steps = reader.list("steps", kMostSteps);
  program.steps.reserve(steps.size());
  for (const JsonValue step : steps)
    program.steps.push_back(step_from(step, program.steps.size(), tensors, constants));
  reader.finish();
  constants.finish();
  tensors.finish();
  program.metadata = file.metadata;
  for (const char* own : {"format", "version", "layout", "network"}) program.metadata.erase(own);
  validate(program);
  share_constants(program);
  set_keep(program, keep);
  check_memory(program, limit.value_or(memory_limit(bytes_of(file))), where);
  return program;
}

int64_t memory_limit(int64_t file_bytes) { return (int64_t{256} << 20) + 16 * file_bytes; }

Program load_program(const std::string& path,
                     std::optional<int64_t> memory_limit,
                     KeepWeights keep) {
  return program_from(load_safetensors(path), path, memory_limit, keep);
}

Program parse_program(std::span<const uint8_t> file,
                      std::string_view where,
                      std::optional<int64_t> memory_limit,
                      KeepWeights keep) {
  return program_from(parse_safetensors(file, where), std::string(where), memory_limit, keep);
}

}  // namespace quantrain::integer
