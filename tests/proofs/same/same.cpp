// Compares two saved models, and their logits on the same images, integer by integer:
//   same NAME MODEL LOGITS MODEL LOGITS
// It prints the result after NAME. A model may be a file of version 1, which has scales
// instead of multipliers; the library's own functions compute the multipliers. The exit status is 0
// if all is equal, 1 if not, 2 if something cannot be read.
#include <cstring>
#include <exception>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/integer/program_file.hpp"
#include "framework/io/format.hpp"
#include "framework/io/safetensors.hpp"

namespace quantrain::proofs {
namespace {

using integer::Program;
using integer::Step;
using integer::Value;
using Json = nlohmann::json;

// --- version 1: layers with the parameters of their inputs and outputs

QParams params_at(const Json& layer, const std::string& prefix) {
  const auto number = [&](const char* name) { return layer.at(prefix + name); };
  QParams params;
  params.type.bits = number("_bits").get<int>();
  params.type.is_signed = number("_signed").get<int>() != 0;
  params.type.narrow = number("_narrow").get<int>() != 0;
  params.scale = {static_cast<float>(number("_scale").get<double>())};
  params.zero_point = {number("_zero_point").get<int32_t>()};
  return params;
}

Activation activation_at(const Json& layer) {
  const auto name = layer.at("activation").get<std::string>();
  if (name == "none") return Activation::kNone;
  if (name == "relu") return Activation::kRelu;
  if (name == "relu6") return Activation::kRelu6;
  throw DataError("version 1", "unknown activation ", name);
}

int64_t elements(const Json& shape) { return Shape(shape.get<std::vector<int64_t>>()).elements(); }

kernels::Conv2dShape window_at(const Json& layer) {
  const auto at = [&](const char* name, size_t i) { return layer.at(name).at(i).get<int64_t>(); };
  return {.n = 1,
          .h = at("image", 0),
          .w = at("image", 1),
          .c = at("image", 2),
          .o = layer.at("outputs").get<int64_t>(),
          .kh = at("kernel", 0),
          .kw = at("kernel", 1),
          .stride_h = at("stride", 0),
          .stride_w = at("stride", 1),
          .pad_h = at("padding", 0),
          .pad_w = at("padding", 1),
          .groups = layer.at("groups").get<int64_t>()};
}

/// Version 1 wrote 1 group for a pool. Here each channel of a pool is a group.
kernels::Conv2dShape pool_at(const Json& layer) {
  kernels::Conv2dShape shape = window_at(layer);
  shape.groups = shape.c;
  return shape;
}

/// The operation of a layer of version 1, and the value that it gives.
struct Derived {
  integer::Operation operation;
  Value value;
};

class Version1 {
 public:
  explicit Version1(const TensorFile& file)
      : file_(file), network_(Json::parse(file.metadata_at("network"))) {}

  Program program() const {
    Program program;
    const Json& input = network_.at("input");
    program.values.push_back({.name = "input",
                              .shape = Shape(input.at("shape").get<std::vector<int64_t>>()),
                              .params = params_at(input, "x")});
    program.inputs = {0};
    for (const Json& layer : network_.at("layers")) {
      const size_t position = program.steps.size();
      Derived derived = derive(layer, std::to_string(position) + ".");
      derived.value.name = layer.at("name").get<std::string>();
      program.values.push_back(std::move(derived.value));
      program.steps.push_back({std::move(derived.operation),
                               layer.at("inputs").get<std::vector<int>>(),
                               static_cast<int>(position) + 1});
    }
    program.outputs = {network_.at("output").get<int>()};
    return program;
  }

 private:
  Derived derive(const Json& layer, const std::string& prefix) const {
    const auto type = layer.at("type").get<std::string>();
    const Json& a = layer.at("attributes");
    if (type == "quantized_linear") {
      const auto input = a.at("input").get<std::vector<int64_t>>();
      integer::QuantizedLinear op{.rows = elements(a.at("input")) / input.back(),
                                  .inputs = input.back(),
                                  .outputs = a.at("outputs").get<int64_t>(),
                                  .product = {}};
      Value value = product(a, prefix, op.outputs, op.product);
      return {std::move(op), std::move(value)};
    }
    if (type == "quantized_conv2d") {
      integer::QuantizedConv2d op{.shape = window_at(a), .product = {}};
      Value value = product(a, prefix, op.shape.o, op.product);
      return {std::move(op), std::move(value)};
    }
    if (type == "quantized_max_pool2d")
      return {integer::QuantizedMaxPool2d{.shape = pool_at(a)}, codes(params_at(a, "x"))};
    if (type == "quantized_flatten")
      return {integer::View{.size = elements(a.at("input"))}, codes(params_at(a, "x"))};

    const QParams y = params_at(a, "y");
    const Activation activation = activation_at(a);
    if (type == "quantized_avg_pool2d") {
      return {integer::QuantizedAvgPool2d::make(pool_at(a), params_at(a, "x"), y, activation),
              codes(y)};
    }
    if (type == "quantized_add") {
      return {integer::QuantizedAdd::make(
                  elements(a.at("shape")), {params_at(a, "a"), params_at(a, "b")}, y, activation),
              codes(y)};
    }
    if (type == "quantized_rescale") {  // becomes a table of 256 results; docs/quantization.md (8)
      return {integer::QuantizedLookup::rescale(
                  elements(a.at("shape")), params_at(a, "x"), y, activation),
              codes(y)};
    }
    throw DataError("version 1", "nothing here translates a layer of type ", type);
  }

  static Value codes(const QParams& params) { return {.name = {}, .shape = {}, .params = params}; }

  Value product(const Json& a,
                const std::string& prefix,
                int64_t outputs,
                integer::QuantizedProduct& product) const {
    const QParams x = params_at(a, "x");
    product.zero_x = stored_zero_point(x);
    product.weight = {file_.values<int8_t>(prefix + "weight"), a.at("weight_bits").get<int>()};
    if (file_.contains(prefix + "bias")) product.bias = file_.values<int32_t>(prefix + "bias");
    std::vector<double> scales;
    for (const float w : file_.values<float>(prefix + "weight_scale"))
      scales.push_back(sum_scale(x.scale[0], w));
    if (a.at("requantize").get<int>() == 0) {
      return {.name = {}, .shape = {}, .params = {}, .scale = std::move(scales)};
    }
    if (scales.size() == 1) scales.resize(static_cast<size_t>(outputs), scales[0]);
    const QParams y = params_at(a, "y");
    product.output = integer::requantization(scales, y, activation_at(a));
    return codes(y);
  }

  const TensorFile& file_;
  Json network_;
};

Program read_program(const std::string& path) {
  const TensorFile file = load_safetensors(path);
  if (file.metadata_at("version") != "1") return integer::load_program(path);
  check_format(path, file, "quantrain-integer", "1");
  return Version1(file).program();
}

// --- all numbers of an operation, by name

using Numbers = std::map<std::string, std::vector<int64_t>>;

/// Collects the members of an operation from its describe(), as the file's writer does.
class Collector {
 public:
  Collector(Numbers& numbers, std::string prefix) : numbers_(numbers), prefix_(std::move(prefix)) {}

  void operator()(const char* name, int64_t value) { put(name, std::vector{value}); }
  void operator()(const char* name, int32_t value) { put(name, std::vector{value}); }
  void optional(const char* name, int64_t value, int64_t) { put(name, std::vector{value}); }
  bool are_two(const char*, const auto& operands) { return operands.size() == 2; }
  void operator()(const char* name, const std::vector<int32_t>& values) { put(name, values); }
  void operator()(const char* name, const SharedArray<int32_t>& values) { put(name, values); }
  void words(const char* name, const SharedArray<int32_t>& values) { put(name, values); }
  void bytes(const char* name, const SharedArray<int32_t>& values) { put(name, values); }
  void operator()(const char* name, const integer::Constant& constant) {
    put("weight_bits", std::vector{constant.bits()});
    put(name, constant.values());
  }
  void operator()(const char* name, const std::vector<uint8_t>& values) { put(name, values); }
  void operator()(const char* name, const StoredOutput& y) {
    put(name, std::vector{y.zero_point, y.lo, y.hi});
  }
  void operator()(const char* name, const std::optional<integer::Requantization>& output) {
    if (!output) return;
    Collector nested(numbers_, prefix_ + name + ".");
    integer::Requantization::describe(*output, nested);
  }
  template <class Entry>
  void operator()(const char* name, const std::vector<Entry>& entries) {
    for (size_t i = 0; i < entries.size(); ++i) {
      Collector nested(numbers_, prefix_ + name + std::to_string(i) + ".");
      Entry::describe(entries[i], nested);
    }
  }
  void operator()(const char* name, const std::vector<kernels::MeanMultiplier>& means) {
    for (const kernels::MeanMultiplier& mean : means) {
      put((std::string(name) + ".count").c_str(), std::vector{mean.count});
      put("m0", std::vector{mean.multiplier.m0});
      put("shift", std::vector{mean.multiplier.shift});
    }
  }

 private:
  void put(const char* name, const auto& values) {
    std::vector<int64_t>& to = numbers_[prefix_ + name];
    to.insert(to.end(), values.begin(), values.end());
  }

  Numbers& numbers_;
  std::string prefix_;
};

Numbers numbers_of(const integer::Operation& operation) {
  Numbers numbers;
  Collector collector(numbers, "");
  std::visit([&](const auto& op) { op.describe(op, collector); }, operation);
  return numbers;
}

// --- the comparison

class Comparison {
 public:
  bool equal() const { return differences_ == 0; }

  void logits(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
    list("logits", a, b);
  }

  void programs(const Program& a, const Program& b) {
    if (a.steps.size() != b.steps.size() || a.inputs.size() != b.inputs.size()) {
      differ("the programs have ",
             a.steps.size(),
             " and ",
             b.steps.size(),
             " steps, ",
             a.inputs.size(),
             " and ",
             b.inputs.size(),
             " inputs");
      return;
    }
    const std::vector<int> ids_a = positions(a);
    const std::vector<int> ids_b = positions(b);
    list("outputs", mapped(a.outputs, ids_a), mapped(b.outputs, ids_b));
    for (size_t i = 0; i < a.inputs.size(); ++i) values(a.value(a.inputs[i]), b.value(b.inputs[i]));
    for (size_t i = 0; i < a.steps.size(); ++i) {
      const Step& s = a.steps[i];
      const Step& t = b.steps[i];
      where_ = "step " + std::to_string(i) + ", " + std::string(type(s.operation)) + ": ";
      if (type(s.operation) != type(t.operation)) {
        differ("is ", type(t.operation), " in the other");
        continue;
      }
      list("inputs", mapped(s.inputs, ids_a), mapped(t.inputs, ids_b));
      const Numbers left = numbers_of(s.operation);
      const Numbers right = numbers_of(t.operation);
      for (const auto& [name, numbers] : left) {
        const auto found = right.find(name);
        list(name, numbers, found == right.end() ? std::vector<int64_t>{} : found->second);
      }
      for (const auto& [name, numbers] : right) {
        if (left.count(name) == 0) differ(name, " is in one only");
      }
      values(a.value(s.output), b.value(t.output));
    }
    where_.clear();
  }

  /// Prints "5 steps, 12 weights, ...".
  void print(size_t steps) const {
    const auto count = [&](std::initializer_list<const char*> names) {
      int64_t sum = 0;
      for (const char* name : names) {
        const auto found = compared_.find(name);
        if (found != compared_.end()) sum += found->second;
      }
      return sum;
    };
    std::cout << steps << " steps, " << count({"weight"}) << " weights, " << count({"bias"})
              << " biases, " << count({"output.m0", "m0", "m_a", "m_b"}) << " multipliers, "
              << count({"output.shift", "shift"}) << " shifts, " << count({"table"})
              << " codes of tables, " << count({"scale"}) << " scales, " << count({"zero point"})
              << " zero points, " << count({"logits"}) << " logits";
  }

 private:
  /// Numbers the values: first the inputs, then the outputs of the steps in their order.
  static std::vector<int> positions(const Program& program) {
    std::vector<int> ids(program.values.size(), -1);
    int next = 0;
    for (const int id : program.inputs) ids[static_cast<size_t>(id)] = next++;
    for (const Step& step : program.steps) ids[static_cast<size_t>(step.output)] = next++;
    return ids;
  }
  static std::vector<int> mapped(std::vector<int> values, const std::vector<int>& ids) {
    for (int& value : values) value = ids[static_cast<size_t>(value)];
    return values;
  }

  void values(const Value& a, const Value& b) {
    if (a.is_codes() != b.is_codes()) {
      differ("gives codes in one, accumulators in the other");
      return;
    }
    if (!a.is_codes()) {
      list("scale", a.scale, b.scale);
      return;
    }
    const auto type = [](const QParams& p) {
      return std::vector<int>{p.type.bits, p.type.is_signed, p.type.narrow};
    };
    list("type", type(*a.params), type(*b.params));
    list("scale", a.params->scale, b.params->scale);
    list("zero point", a.params->zero_point, b.params->zero_point);
  }

  template <class T>
  void list(const std::string& name, const std::vector<T>& a, const std::vector<T>& b) {
    compared_[name] += static_cast<int64_t>(a.size());
    if (a.size() != b.size()) {
      differ(name, ": ", a.size(), " and ", b.size(), " numbers");
      return;
    }
    size_t count = 0;
    size_t first = 0;
    for (size_t i = a.size(); i-- > 0;) {
      if (a[i] == b[i]) continue;
      ++count;
      first = i;
    }
    if (count > 0) {
      differ(name,
             ": ",
             count,
             " of ",
             a.size(),
             " differ, the first at ",
             first,
             ": ",
             a[first],
             " and ",
             b[first]);
    }
  }

  template <class... Parts>
  void differ(const Parts&... parts) {
    constexpr int64_t kShown = 8;
    if (++differences_ > kShown) return;
    std::cerr << "  " << where_;
    (std::cerr << ... << parts) << '\n';
  }

  std::map<std::string, int64_t> compared_;
  std::string where_;
  int64_t differences_ = 0;
};

std::vector<int32_t> read_logits(const std::string& path) {
  InputFile file(path);
  std::vector<uint8_t> bytes(static_cast<size_t>(file.left()));
  if (bytes.empty() || file.read(bytes) != bytes.size())
    throw DataError(path, "there are no logits in it");
  std::vector<int32_t> logits(bytes.size() / sizeof(int32_t));
  std::memcpy(logits.data(), bytes.data(), logits.size() * sizeof(int32_t));
  return logits;
}

int compare(const std::string& name, const std::string (&files)[4]) {
  const Program a = read_program(files[0]);
  const Program b = read_program(files[2]);
  Comparison comparison;
  comparison.programs(a, b);
  comparison.logits(read_logits(files[1]), read_logits(files[3]));
  std::cout << name << ": ";
  comparison.print(a.steps.size());
  std::cout << (comparison.equal() ? ": the same" : ": DIFFERENT") << std::endl;
  return comparison.equal() ? 0 : 1;
}

}  // namespace
}  // namespace quantrain::proofs

int main(int argc, char** argv) try {
  if (argc != 6) throw quantrain::Error("same", "usage: same NAME MODEL LOGITS MODEL LOGITS");
  return quantrain::proofs::compare(argv[1], {argv[2], argv[3], argv[4], argv[5]});
} catch (const std::exception& error) {
  std::cerr << "same: " << error.what() << '\n';
  return 2;
}
