// quantrain compare: two models on the same data, layer by layer.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/error.hpp"
#include "tools/command.hpp"
#include "tools/data.hpp"
#include "tools/flags.hpp"
#include "tools/layer_values.hpp"
#include "tools/model.hpp"
#include "tools/output.hpp"

namespace quantrain::tools {
namespace {

struct CompareOptions {
  ModelFlags a;
  ModelFlags b;
  OnnxFlags onnx;  // of both
  DataFlags data;
  Common common;
};

constexpr int64_t kTogether = 32;     // samples of a batch: every value is kept
constexpr int64_t kUnlessSaid = 256;  // samples

/// What differs between the values of one layer.
struct Difference {
  std::string name;
  bool is_output = false;
  int64_t values = 0;
  int64_t codes = 0;  ///< compared
  int64_t different = 0;
  int64_t largest = 0;
  double signal = 0.0;
  double noise = 0.0;
};

/// The codes of a layer, or of its real values with these parameters.
std::vector<int32_t> codes_by(const LayerValues& values, const QParams& params) {
  if (values.params && *values.params == params) return values.codes;
  std::vector<int32_t> codes;
  for (const float value : values.real)
    codes.push_back(quantrain::quantize(
        value, params.scale[0], params.zero_point[0], params.type.qmin(), params.type.qmax()));
  return codes;
}

void add(const LayerValues& a, const LayerValues& b, Difference& sum) {
  sum.values += std::ssize(a.real);
  for (size_t i = 0; i < a.real.size(); ++i) {
    const double change = static_cast<double>(b.real[i]) - static_cast<double>(a.real[i]);
    sum.signal += static_cast<double>(a.real[i]) * static_cast<double>(a.real[i]);
    sum.noise += change * change;
  }
  const std::optional<QParams>& params = b.params ? b.params : a.params;
  if (!params) return;
  const std::vector<int32_t> left = codes_by(a, *params);
  const std::vector<int32_t> right = codes_by(b, *params);
  for (size_t i = 0; i < left.size(); ++i) {
    const int64_t change = std::abs(int64_t{left[i]} - int64_t{right[i]});
    sum.different += change != 0;
    sum.largest = std::max(sum.largest, change);
  }
  sum.codes += std::ssize(left);
}

Difference& entry(std::vector<Difference>& all, const std::string& name, size_t turn, bool output) {
  for (Difference& one : all) {
    if (one.name == name && one.is_output == output && turn-- == 0) return one;
  }
  all.push_back({.name = name, .is_output = output});
  return all.back();
}

/// Pairs layers of the same name and shape; if a name occurs several times, in their order.
void add_layers(const AllValues& a, const AllValues& b, std::vector<Difference>& all) {
  std::vector<bool> used(b.layers.size(), false);
  std::map<std::string, size_t> turns;
  for (const LayerValues& left : a.layers) {
    for (size_t i = 0; i < b.layers.size(); ++i) {
      const LayerValues& right = b.layers[i];
      if (used[i] || right.name != left.name || !(right.shape == left.shape)) continue;
      used[i] = true;
      add(left, right, entry(all, left.name, turns[left.name]++, false));
      break;
    }
  }
}

int64_t class_at(const LayerValues& values, int64_t row) {
  const int64_t scores = values.shape.back();
  const auto first = values.real.begin() + row * scores;
  return std::max_element(first, first + scores) - first;
}

/// The rows of the first output whose class differs.
int64_t other_classes(const LayerValues& a, const LayerValues& b) {
  if (a.shape.rank() < 2 || b.shape.rank() < 2 || a.shape.back() != b.shape.back()) return 0;
  const int64_t scores = a.shape.back();
  int64_t count = 0;
  for (int64_t row = 0; scores > 1 && row < std::ssize(a.real) / scores; ++row)
    count += class_at(a, row) != class_at(b, row);
  return count;
}

void check_outputs_fit(const Model& a,
                       const AllValues& of_a,
                       const Model& b,
                       const AllValues& of_b) {
  if (of_a.outputs.size() != of_b.outputs.size())
    throw DataError("compare",
                    a.path,
                    " has ",
                    of_a.outputs.size(),
                    " outputs, ",
                    b.path,
                    " has ",
                    of_b.outputs.size());
  for (size_t i = 0; i < of_a.outputs.size(); ++i) {
    if (of_a.outputs[i].real.size() != of_b.outputs[i].real.size())
      throw DataError("compare",
                      "output ",
                      i,
                      " of a batch is ",
                      of_a.outputs[i].shape,
                      " in ",
                      a.path,
                      " and ",
                      of_b.outputs[i].shape,
                      " in ",
                      b.path);
  }
}

/// Values of int8 mean the same for both: numbers, or the codes of the same real values.
void check_same_input(const Model& a, const Samples& of_a, const Model& b, const Samples& of_b) {
  const std::optional<int32_t> offset_a = of_a.reading.int8_offset;
  const std::optional<int32_t> offset_b = of_b.reading.int8_offset;
  if (offset_a.has_value() != offset_b.has_value())
    throw DataError(of_a.data->path,
                    "holds int8, which are codes of ",
                    offset_a ? a.path : b.path,
                    " and numbers for ",
                    offset_a ? b.path : a.path,
                    ": save the real values as floats");
  if (!offset_a) return;
  const auto zero = [](const Samples& samples) {
    return samples.reading.params->zero_point[0] - *samples.reading.int8_offset;
  };
  if (zero(of_a) != zero(of_b) || of_a.reading.params->scale != of_b.reading.params->scale)
    throw DataError(of_a.data->path,
                    "holds int8, which are codes of other real values for ",
                    a.path,
                    " than for ",
                    b.path,
                    ": save the real values as floats");
}

void compare_models(const CompareOptions& given) {
  CompareOptions options = given;
  options.common.apply();
  if (options.data.samples == 0) options.data.samples = kUnlessSaid;
  auto [a, b] = open_models(options.a.path, options.b.path, options.onnx);
  const auto data = std::make_shared<const Data>(read_data(options.data, a));
  const std::vector<int64_t> other = b.input_shape();
  if (b.inputs() != 1 || (!other.empty() && other != data->shape))
    throw DataError("compare",
                    a.path,
                    " takes samples ",
                    Shape(std::span<const int64_t>(data->shape)),
                    ", ",
                    b.path,
                    " takes ",
                    Shape(std::span<const int64_t>(other)));
  Samples of_a(data, options.data, a);
  Samples of_b(data, options.data, b);
  // A network of floats that does not say what its input means gets what the other model gets.
  const bool said = !(options.data.range + options.data.mean + options.data.deviation).empty();
  if (!said && !a.meaning() && b.meaning()) of_a.reading = of_b.reading;
  if (!said && !b.meaning() && a.meaning()) of_b.reading = of_a.reading;
  check_same_input(a, of_a, b, of_b);

  LayerRunner run_a(a, of_a);
  LayerRunner run_b(b, of_b);
  std::vector<Difference> all;
  int64_t classes = 0;
  for (int64_t first = 0; first < data->size; first += kTogether) {
    std::vector<int64_t> rows;
    for (int64_t i = first; i < std::min(first + kTogether, data->size); ++i) rows.push_back(i);
    const AllValues values_a = run_a.run(rows);
    const AllValues values_b = run_b.run(rows);
    check_outputs_fit(a, values_a, b, values_b);
    add_layers(values_a, values_b, all);
    for (size_t i = 0; i < values_a.outputs.size(); ++i) {
      const LayerValues& left = values_a.outputs[i];
      add(left, values_b.outputs[i], entry(all, left.name, 0, true));
    }
    classes += other_classes(values_a.outputs[0], values_b.outputs[0]);
  }
  Report report;
  report.fact("a", a.path + ", " + a.description());
  report.fact("b", b.path + ", " + b.description());
  report.fact("samples", data->size);
  if (a.kind != Model::Kind::kFloat) warn_of_saturation(of_a, report, a.path);
  if (b.kind != Model::Kind::kFloat) warn_of_saturation(of_b, report, b.path);
  std::vector<std::vector<Cell>> rows;
  std::vector<double> weights;
  for (const bool outputs : {false, true}) {
    for (const Difference& layer : all) {
      if (layer.is_output != outputs) continue;
      rows.push_back({layer.name,
                      layer.values,
                      layer.codes > 0 ? Cell(layer.different) : Cell(),
                      layer.codes > 0 ? Cell(layer.largest) : Cell(),
                      decibels(layer.signal, layer.noise)});
      // Outputs first, then what loses most; without noise, nothing.
      weights.push_back(outputs ? INFINITY : layer.noise == 0.0 ? 0.0 : layer.noise / layer.signal);
    }
  }
  report.long_table("layers",
                    {"layer", ">values", ">codes_that_differ", ">by_at_most", ">signal_to_noise"},
                    std::move(rows),
                    std::move(weights),
                    ", which differ less");
  report.fact("other_classes", classes);
  print(report, options.common.json, options.common.all);
}

}  // namespace

Run compare(CLI::App& line) {
  const auto options = std::make_shared<CompareOptions>();
  options->a.declare_path(line, "A");
  options->b.declare_path(line, "B");
  options->onnx.declare(line);
  options->data.declare(line);
  options->common.declare(line);
  example(line, "  quantrain compare network.onnx model.safetensors --data images/ --samples 1000");
  return [options] { compare_models(*options); };
}

}  // namespace quantrain::tools
