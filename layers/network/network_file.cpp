#include "layers/network/network_file.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "framework/autograd/parameters.hpp"
#include "framework/core/error.hpp"
#include "framework/io/format.hpp"
#include "framework/io/json.hpp"
#include "framework/io/json_writer.hpp"
#include "framework/io/safetensors.hpp"
#include "layers/state.hpp"

namespace quantrain {
namespace {

constexpr const char* kNetworkFormat = "quantrain-network";
constexpr const char* kNetworkVersion = "1";
constexpr const char* kNetwork = "network";
constexpr const char* kQuantization = "quantization";
constexpr const char* kReserved[] = {"format", "version", "layout", kNetwork, kQuantization};

// Limits for one network. Steps have names, and listing named parameters takes quadratic time.
constexpr int64_t kMostEntries = 1 << 16;
constexpr int64_t kMostInteger = std::numeric_limits<int64_t>::max();

std::atomic<RestoreSlots> restore_slots = nullptr;

// --- writing

void write(JsonWriter& json, double value) {
  if (std::isfinite(value)) return json.write(value);
  if (std::isnan(value)) throw DataError("save_network", "a member of a layer is NaN");
  json.object([&] { json.member("real", value < 0 ? "-inf" : "inf"); });
}
void write(JsonWriter& json, const auto& value) { json.write(value); }

void write(JsonWriter& json, const NetworkInput& input) {
  json.object([&] {
    json.member("name", input.name);
    json.member("shape", input.shape);
    if (input.range) json.member("range", std::vector{input.range->min, input.range->max});
    if (!input.features.empty()) {
      json.member("offsets", input.features.offset);
      json.member("scales", input.features.scale);
    }
    if (!input.feature_names.empty()) json.member("features", input.feature_names);
  });
}

/// The name under which the network's state lists these values.
const std::string& name_in(const std::vector<NamedState>& all, const NamedState& entry) {
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const NamedState& other) { return other.same_as(entry); });
  if (found == all.end())
    throw GraphError("save_network", "the network does not list its \"", entry.name, '"');
  return found->name;
}

void write(JsonWriter& json,
           const NetworkStep& step,
           const std::vector<NamedState>& all,
           bool training) {
  const LayerMembers members = members_of(*step.layer);
  json.object([&] {
    json.member("name", step.name);
    json.member("type", step.layer->type());
    json.member("inputs", step.inputs);
    json.member("members", [&] {
      json.object([&] {
        for (const auto& option : members.options) {
          json.member(option.first, [&] {
            std::visit([&](const auto& value) { write(json, value); }, option.second);
          });
        }
      });
    });
    if (!members.state.empty()) {
      json.member("tensors", [&] {
        json.object([&] {
          for (const NamedState& entry : members.state)
            json.member(entry.name, name_in(all, entry));
        });
      });
    }
    if (step.layer->training() != training) json.member("training", step.layer->training());
  });
}

std::string json_of(const Network& net, const std::vector<NamedState>& all) {
  JsonWriter json([](const std::string& text) {
    return std::make_exception_ptr(
        DataError("save_network", "a name cannot be written as JSON: ", text));
  });
  std::vector<std::string> fixed;
  for (const NamedState& entry : net.named_parameters()) {
    if (!entry.tensor.requires_grad()) fixed.push_back(entry.name);
  }
  const auto list = [&](const char* name, const auto& entries, const auto& entry) {
    json.member(name, [&] {
      json.list([&] {
        for (const auto& each : entries) entry(each);
      });
    });
  };
  json.object([&] {
    list("inputs", net.inputs(), [&](const NetworkInput& input) { write(json, input); });
    list("tensors", net.tensors(), [&](const NetworkTensor& entry) {
      json.object([&] {
        json.member("name", entry.name);
        json.member("tensor", name_in(all, NamedState(entry.name, entry.tensor)));
        json.member("parameter", entry.is_parameter);
      });
    });
    list("steps", net.steps(), [&](const NetworkStep& step) {
      write(json, step, all, net.training());
    });
    json.member("outputs", net.outputs());
    json.member("classes", net.classes());
    json.member("listed", net.parts().listed);
    json.member("fixed", fixed);
    json.member("training", net.training());
  });
  return std::move(json).text();
}

// --- reading

/// Reads a JSON object of the file. Errors name the object by `where`.
class Reader : public JsonReader {
 public:
  Reader(JsonValue json, const std::string& where)
      : JsonReader(json, json_error<DataError>(where)), where_(where) {}
  const std::string& where() const { return where_; }
  std::vector<std::string> texts(std::string_view name, int64_t most) {
    std::vector<std::string> all;
    for (const JsonValue entry : list(name, most)) {
      const std::optional<std::string_view> text = entry.text();
      if (!text) throw DataError(where_, name, " has an entry that is no text: ", entry);
      all.emplace_back(*text);
    }
    return all;
  }

 private:
  std::string where_;
};

Attribute attribute_from(JsonValue json, const std::string& where, std::string_view name) {
  if (const auto whole = json.integer(std::numeric_limits<int64_t>::min(), kMostInteger))
    return *whole;
  if (const auto real = json.real()) return *real;
  if (const auto text = json.text()) return std::string(*text);
  if (json.is_object()) {
    Reader reader(json, where);
    const std::string real = reader.text("real");
    reader.finish();
    if (real == "inf") return std::numeric_limits<double>::infinity();
    if (real == "-inf") return -std::numeric_limits<double>::infinity();
  }
  if (json.is_list() && json.size() <= kMostMemberIntegers) {
    std::vector<int64_t> list;
    for (const JsonValue entry : json.entries()) {
      const auto whole = entry.integer(std::numeric_limits<int64_t>::min(), kMostInteger);
      if (!whole) throw DataError(where, "the member \"", name, "\" lists ", entry);
      list.push_back(*whole);
    }
    return list;
  }
  throw DataError(where, "the member \"", name, "\" is ", json);
}

/// The tensors of a file, each made once, so that layers share what they name alike.
class Tensors {
 public:
  Tensors(const TensorFile& file, const std::string& where) : file_(file), where_(where) {}

  NamedState get(const std::string& local, const std::string& name) {
    const auto known = made_.find(name);
    if (known != made_.end()) return renamed(local, known->second);
    if (!file_.contains(name)) throw DataError(where_, "lacks the tensor \"", name, '"');
    const TensorFile::Entry& entry = file_.at(name);
    if (entry.dtype == DType::kF32) {
      NamedState made(name, Tensor::from(entry.shape, file_.values<float>(name)));
      return renamed(local, made_.emplace(name, std::move(made)).first->second);
    }
    if (entry.dtype != DType::kI64) {
      throw DataError(
          where_, '"', name, "\" is ", dtype_name(entry.dtype), ", expected F32 or I64");
    }
    IntegerBuffer counts(entry.shape, {.least = 0, .most = kMostCount});
    const std::vector<int64_t> values = file_.values<int64_t>(name);
    counts.check(values, where_, name);
    counts.set(values);
    return renamed(local, made_.emplace(name, NamedState(name, counts)).first->second);
  }

 private:
  static NamedState renamed(const std::string& name, NamedState entry) {
    entry.name = name;
    return entry;
  }

  const TensorFile& file_;
  const std::string& where_;
  std::map<std::string, NamedState> made_;
};

NetworkInput input_from(JsonValue json, const std::string& where) {
  Reader reader(json, where + ": an input");
  NetworkInput input{.name = reader.text("name")};
  input.shape = reader.integers("shape", Shape::kMaxRank - 1, 1, int64_t{1} << 40);
  if (reader.has("range")) {
    const std::vector<float> range = reader.reals32("range", 2);
    if (range.size() != 2)
      throw DataError(reader.where(), "a range has two ends, got ", range.size());
    input.range = {range[0], range[1]};
  }
  if (reader.has("offsets")) {
    input.features.offset = reader.reals32("offsets", kMostEntries);
    input.features.scale = reader.reals32("scales", kMostEntries);
    validate(input.features, input.features.size(), input.name);
  }
  if (reader.has("features")) input.feature_names = reader.texts("features", kMostEntries);
  reader.finish();
  return input;
}

NetworkStep step_from(JsonValue json, size_t position, Tensors& tensors, bool training) {
  Reader reader(json, "step " + std::to_string(position));
  NetworkStep step{.name = reader.text("name"), .layer = nullptr, .inputs = {}};
  const std::string type = reader.text("type");
  step.inputs = reader.texts("inputs", kMostNetworkSteps);
  LayerMembers members;
  const JsonValue options = reader.at("members");
  if (!options.is_object()) throw DataError(reader.where(), "members is ", options);
  for (const auto& [name, value] : options.members())
    members.options.add(std::string(name), attribute_from(value, reader.where(), name));
  if (reader.has("tensors")) {
    const JsonValue names = reader.at("tensors");
    Reader texts(names, reader.where());
    for (const auto& [local, value] : names.members())
      members.state.push_back(tensors.get(std::string(local), texts.text(local)));
    texts.finish();
  }
  if (reader.has("training")) training = reader.boolean("training");
  reader.finish();
  if (find_layer_type(type) == nullptr) {
    throw DataError(reader.where(),
                    '"',
                    step.name,
                    "\" is of the unknown type \"",
                    type,
                    "\": if it is your own, call register_layer or register_operation first");
  }
  step.layer = make_layer(type, members);
  step.layer->train(training);
  return step;
}

JsonDocument network_of(const TensorFile& file, const std::string& where) {
  try {
    return JsonDocument(file.metadata_at(kNetwork));
  } catch (const JsonDocument::Malformed& what) {
    throw DataError(where, "the network ", what.text);
  }
}

int64_t bytes_of(const TensorFile& file) {
  size_t bytes = 0;
  for (const TensorFile::Entry& entry : file.entries()) bytes += entry.bytes.size();
  return static_cast<int64_t>(bytes);
}

void fill_slots(Network& net, const TensorFile& file, const std::string& where) {
  const auto found = file.metadata.find(kQuantization);
  if (found == file.metadata.end()) return;
  const RestoreSlots restore = restore_slots;
  if (restore == nullptr) {
    throw DataError(where,
                    "the network is prepared for quantization, which this program cannot do: "
                    "include quant/prepare/scopes.hpp and link quantrain::quant");
  }
  restore(net, found->second, bytes_of(file));
  if (net.slots().inputs.size() != net.inputs().size()) {
    throw DataError(where,
                    "the network has ",
                    net.inputs().size(),
                    " inputs, and is prepared for ",
                    net.slots().inputs.size());
  }
}

Network network_from(const TensorFile& file, const std::string& where) {
  check_format(where, file, kNetworkFormat, kNetworkVersion);
  const JsonDocument document = network_of(file, where);
  Reader reader(document.root(), where);
  Tensors tensors(file, where);
  NetworkParts parts;
  for (const JsonValue json : reader.list("inputs", kMostNetworkSteps))
    parts.inputs.push_back(input_from(json, where));
  for (const JsonValue json : reader.list("tensors", kMostNetworkSteps)) {
    Reader entry(json, where + ": a tensor");
    NetworkTensor tensor{.name = entry.text("name"), .tensor = {}};
    const std::string name = entry.text("tensor");
    tensor.tensor = tensors.get(tensor.name, name).tensor;
    if (!tensor.tensor.defined())
      throw DataError(where, '"', tensor.name, "\" is \"", name, "\", which holds integers");
    tensor.is_parameter = entry.boolean("parameter");
    entry.finish();
    parts.tensors.push_back(std::move(tensor));
  }
  const bool training = reader.boolean("training");
  for (const JsonValue json : reader.list("steps", kMostNetworkSteps))
    parts.steps.push_back(step_from(json, parts.steps.size(), tensors, training));
  parts.outputs = reader.texts("outputs", kMostNetworkSteps);
  parts.classes = reader.texts("classes", kMostEntries);
  parts.listed = reader.texts("listed", kMostNetworkSteps);
  const std::vector<std::string> fixed = reader.texts("fixed", kMostEntries);
  reader.finish();
  parts.metadata = file.metadata;
  for (const char* own : kReserved) parts.metadata.erase(own);
  std::vector<bool> modes;
  for (const NetworkStep& step : parts.steps) modes.push_back(step.layer->training());
  Network net(std::move(parts));
  net.train(training);
  for (size_t i = 0; i < modes.size(); ++i) net.steps()[i].layer->train(modes[i]);
  fill_slots(net, file, where);
  load_state(where, file, state(net));
  std::map<std::string, Tensor> parameters;
  for (NamedState& entry : net.named_parameters()) parameters.emplace(entry.name, entry.tensor);
  for (const std::string& name : fixed) {
    const auto found = parameters.find(name);
    if (found == parameters.end())
      throw DataError(where, "fixed names \"", name, "\", which is no parameter");
    found->second.set_requires_grad(false);
  }
  return net;
}

}  // namespace

void save_network(const Network& net, const std::string& path) {
  TensorFile file;
  set_format(file, kNetworkFormat, kNetworkVersion);
  const std::vector<NamedState> all = state(net);
  file.metadata[kNetwork] = json_of(net, all);
  if (net.slots().preparation != nullptr)
    file.metadata[kQuantization] = net.slots().preparation->describe(net);
  for (const auto& [key, value] : net.metadata()) {
    const bool reserved =
        std::find(std::begin(kReserved), std::end(kReserved), key) != std::end(kReserved);
    if (reserved) throw DataError("save_network", path, ": \"", key, "\" is reserved for the file");
    file.metadata[key] = value;
  }
  add_state(file, all);
  network_from(file, path);  // what is saved can be loaded
  save_safetensors(path, file);
}

Network load_network(const std::string& path) { return network_from(load_safetensors(path), path); }

Network parse_network(std::span<const uint8_t> file, std::string_view where) {
  return network_from(parse_safetensors(file, where), std::string(where));
}

void set_restore_slots(RestoreSlots restore) { restore_slots = restore; }

}  // namespace quantrain
