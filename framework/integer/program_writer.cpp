#include <limits>

#include "framework/core/error.hpp"
#include "framework/integer/program_constants.hpp"
#include "framework/integer/program_file.hpp"
#include "framework/integer/program_format.hpp"
#include "framework/io/format.hpp"
#include "framework/io/json_writer.hpp"
#include "framework/io/safetensors.hpp"

namespace quantrain::integer {
namespace {

/// Writes the members of an operation: numbers to JSON, arrays to tensors.
class Writer {
 public:
  Writer(JsonWriter& json, TensorFile& file, const ProgramConstants& constants, std::string prefix)
      : json_(json), file_(file), constants_(constants), prefix_(std::move(prefix)) {}

  void operator()(const char* name, int64_t value) { json_.member(name, value); }
  void operator()(const char* name, int32_t value) { json_.member(name, value); }
  // Not inlined: each call would make the device's program larger.
  [[gnu::noinline]] void optional(const char* name, int64_t value, int64_t usual) {
    if (value != usual) json_.member(name, value);
  }
  // Two operands are written under separate names. If there are more or fewer, they are written as
  // a list.
  bool are_two(const char*, const auto& operands) const { return operands.size() == 2; }
  void operator()(const char* name, const std::vector<int32_t>& values) {
    add<int32_t>(name, values);
  }
  void operator()(const char* name, const SharedArray<int32_t>& values) {
    if (!values.empty()) json_.member(name, constants_.at(values));
  }
  void operator()(const char* name, const Constant& constant) {
    if (!constant.empty()) json_.member(name, constants_.at(constant));
  }
  void words(const char* name, const SharedArray<int32_t>& values) { add<int32_t>(name, values); }
  void bytes(const char* name, const SharedArray<int32_t>& values) {
    std::vector<int8_t> narrow;
    for (const int32_t value : values) narrow.push_back(static_cast<int8_t>(value));
    add<int8_t>(name, narrow);
  }
  void operator()(const char* name, const std::vector<uint8_t>& values) {
    add<uint8_t>(name, values);
  }
  void operator()(const char* name, const StoredOutput& y) {
    object(name, [&] {
      json_.member("zero_point", y.zero_point);
      json_.member("lo", y.lo);
      json_.member("hi", y.hi);
    });
  }
  void operator()(const char* name, const std::optional<Requantization>& output) {
    if (!output) return;
    object(name, [&] {
      Writer nested(json_, file_, constants_, prefix_ + name + ".");
      Requantization::describe(*output, nested);
    });
  }
  template <class Entry>
  void operator()(const char* name, const std::vector<Entry>& entries) {
    size_t k = 0;
    objects(name, entries, [&](const Entry& entry) {
      Writer nested(json_, file_, constants_, prefix_ + name + "." + std::to_string(k++) + ".");
      Entry::describe(entry, nested);
    });
  }
  void operator()(const char* name, const std::vector<kernels::MeanMultiplier>& means) {
    objects(name, means, [&](const auto& mean) {
      json_.member("count", mean.count);
      json_.member("m0", mean.multiplier.m0);
      json_.member("shift", mean.multiplier.shift);
    });
  }

 private:
  template <class Body>
  void object(const char* name, const Body& body) {
    json_.member(name, [&] { json_.object(body); });
  }
  template <class T, class Body>
  void objects(const char* name, const std::vector<T>& entries, const Body& body) {
    json_.member(name, [&] {
      json_.list([&] {
        for (const T& entry : entries) json_.object([&] { body(entry); });
      });
    });
  }
  template <class T>
  void add(const char* name, std::span<const T> values) {
    file_.add<T>(prefix_ + name, {static_cast<int64_t>(values.size())}, values);
  }

  JsonWriter& json_;
  TensorFile& file_;
  const ProgramConstants& constants_;
  std::string prefix_;
};

void write(JsonWriter& json, const ProgramConstants& constants, TensorFile& file) {
  size_t position = 0;
  for (const ProgramConstants::Entry& entry : constants.entries()) {
    const Constant& codes = entry.codes;
    const SharedArray<int32_t>& numbers = entry.numbers;
    const std::string name = constant_name(position++);
    json.object([&] {
      json.member("bits", codes.empty() ? 32 : codes.bits());
      json.member("count", codes.size() + numbers.size());
    });
    if (codes.empty()) {
      file.add<int32_t>(
          name, {numbers.size()}, {numbers.data(), static_cast<size_t>(numbers.size())});
    } else {
      const std::vector<uint8_t> packed = codes.packed();
      file.add<uint8_t>(name, {std::ssize(packed)}, packed);
    }
  }
}

void write(JsonWriter& json, const QParams& params) {
  json.object([&] {
    json.member("bits", params.type.bits);
    json.member("signed", params.type.is_signed);
    json.member("narrow", params.type.narrow);
    json.member("scale", params.scale[0]);
    json.member("zero_point", params.zero_point[0]);
  });
}

void write(JsonWriter& json, const Value& value) {
  json.object([&] {
    json.member("name", value.name);
    json.member("shape", value.shape);
    if (value.params) {
      json.member("codes", [&] { write(json, *value.params); });
    } else {
      json.member("scale", value.scale);
    }
    if (value.features.empty()) return;
    json.member("features", [&] {
      json.object([&] {
        json.member("offset", value.features.offset);
        json.member("scale", value.features.scale);
      });
    });
  });
}

void write(JsonWriter& json,
           size_t i,
           const Step& step,
           const ProgramConstants& constants,
           TensorFile& file) {
  Writer writer(json, file, constants, std::to_string(i) + ".");
  const auto members = [&] {
    std::visit([&](const auto& op) { op.describe(op, writer); }, step.operation);
  };
  json.object([&] {
    json.member("type", type(step.operation));
    json.member("inputs", step.inputs);
    json.member("output", step.output);
    json.member("members", [&] { json.object(members); });
    const Origin& origin = step.origin;
    if (!origin.weight_scale.empty()) json.member("weight_scale", origin.weight_scale);
    if (origin.about.empty()) return;
    json.member("origin", [&] {
      json.object([&] {
        for (const auto& [name, text] : origin.about) json.member(name, text);
      });
    });
  });
}

}  // namespace

TensorFile tensors_of(const Program& program, const std::string& path) {
  TensorFile file;
  set_format(file, kFormat, kVersion);
  file.metadata["network"] = "";
  for (const auto& [key, value] : program.metadata) {
    if (!file.metadata.emplace(key, value).second)
      throw DataError("save", path, ": \"", key, "\" is reserved for the file");
  }
  JsonWriter json([&](const std::string& text) {
    return std::make_exception_ptr(
        DataError(path, "a layer's name cannot be written as JSON: ", text));
  });
  const ProgramConstants constants(program);
  const auto values = [&] {
    for (const Value& value : program.values) write(json, value);
  };
  const auto steps = [&] {
    for (size_t i = 0; i < program.steps.size(); ++i)
      write(json, i, program.steps[i], constants, file);
  };
  json.object([&] {
    json.member("values", [&] { json.list(values); });
    if (!constants.entries().empty())
      json.member("constants", [&] { json.list([&] { write(json, constants, file); }); });
    json.member("inputs", program.inputs);
    json.member("outputs", program.outputs);
    json.member("steps", [&] { json.list(steps); });
  });
  file.metadata["network"] = json.text();
  program_from(file, path, std::numeric_limits<int64_t>::max());  // what is saved can be loaded
  return file;
}

void save_program(const std::string& path, const Program& program) {
  save_safetensors(path, tensors_of(program, path));
}

}  // namespace quantrain::integer
