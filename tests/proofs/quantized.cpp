#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>

#include "framework/core/error.hpp"
#include "quant/analysis/parity.hpp"
#include "quant/import/onnx/import_quantized_onnx.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/proofs/proofs.hpp"

namespace quantrain::proofs {
namespace {

/// The codes of a quantizer, as ONNX Runtime computes them for all images.
struct PeerCodes {
  std::string name;
  int64_t size = 0;  ///< for one image
  std::vector<uint8_t> codes;
};

/// What tests/proofs/quantized_peer.py wrote for a file.
std::vector<PeerCodes> read_peer(const std::string& folder) {
  std::vector<PeerCodes> peer;
  std::ifstream list(folder + "/list");
  std::string file;
  PeerCodes entry;
  while (list >> file >> entry.name >> entry.size) {
    std::ifstream codes(folder + "/" + file, std::ios::binary);
    entry.codes.assign(std::istreambuf_iterator<char>(codes), {});
    peer.push_back(entry);
  }
  if (peer.empty()) throw DataError("prove", folder, "/list: run tests/proofs/quantized_peer.py");
  return peer;
}

struct Differences {
  int64_t codes = 0;
  int64_t different = 0;
  int64_t most = 0;

  void add(int a, int b) {
    const int64_t distance = std::abs(a - b);
    ++codes;
    different += distance != 0 ? 1 : 0;
    most = std::max(most, distance);
  }
  void add(const Differences& other) {
    codes += other.codes;
    different += other.different;
    most = std::max(most, other.most);
  }
  double share() const {
    return codes == 0 ? 0.0 : 100.0 * static_cast<double>(different) / static_cast<double>(codes);
  }
};

/// The peer's codes of each value of a program, in the order of both files; -1 where it has none.
std::vector<int> matched(const integer::Program& program, const std::vector<PeerCodes>& peer) {
  std::vector<int> found(program.values.size(), -1);
  const auto at = [](int id) { return static_cast<size_t>(id); };
  found[at(program.inputs[0])] = 0;
  size_t next = 1;
  for (const integer::Step& step : program.steps) {
    // A view has the codes of its input; the file's are in another order.
    if (std::holds_alternative<integer::View>(step.operation)) {
      found[at(step.output)] = found[at(step.inputs[0])];
      continue;
    }
    const int64_t size = program.values[at(step.output)].shape.elements();
    size_t k = next;
    while (k < peer.size() && peer[k].size != size) ++k;
    if (k == peer.size()) continue;
    found[at(step.output)] = static_cast<int>(k);
    next = k + 1;
  }
  return found;
}

/// One step on the peer's codes, against the peer's result.
Differences alone(const integer::Program& program,
                  const integer::Step& step,
                  const std::vector<int>& match,
                  const std::vector<PeerCodes>& peer) {
  integer::Program one;
  integer::Step copy = step;
  std::vector<std::span<const uint8_t>> x;
  std::map<int, int> ids;
  for (int& id : copy.inputs) {
    const auto [place, is_new] = ids.emplace(id, static_cast<int>(one.values.size()));
    if (is_new) {
      one.inputs.push_back(place->second);
      one.values.push_back(program.value(id));
      x.emplace_back(peer[static_cast<size_t>(match[static_cast<size_t>(id)])].codes);
    }
    id = place->second;
  }
  const PeerCodes& right = peer[static_cast<size_t>(match[static_cast<size_t>(step.output)])];
  copy.output = static_cast<int>(one.values.size());
  one.outputs = {copy.output};
  one.values.push_back(program.value(step.output));
  one.steps = {copy};
  const IntegerModel model(one);
  std::vector<int32_t> y(right.codes.size());
  const std::vector<std::span<int32_t>> to{y};
  model.run_codes(x, to);
  const int32_t zero = program.value(step.output).params->zero_point[0];
  Differences differences;
  for (size_t i = 0; i < y.size(); ++i) differences.add(y[i] + zero, right.codes[i]);
  return differences;
}

int64_t largest(std::span<const uint8_t> codes) {
  return std::max_element(codes.begin(), codes.end()) - codes.begin();
}

bool prove_file(const std::string& path, const Images& images, const Training& training) {
  const std::vector<PeerCodes> peer = read_peer(path.substr(0, path.size() - 5));
  quant::QuantizedOnnx imported = quant::import_quantized_onnx(path);
  Network& net = imported.network;
  const Tensor example = example_of(images);
  const IntegerModel model = quant::convert(net, example);
  const integer::Program& program = model.program();
  const std::vector<int> match = matched(program, peer);
  const int64_t n = static_cast<int64_t>(peer[0].codes.size()) / peer[0].size;

  Differences by_layer, whole;
  for (const integer::Step& step : program.steps) {
    if (std::holds_alternative<integer::View>(step.operation)) continue;
    const auto has_peer = [&](int id) { return match[static_cast<size_t>(id)] >= 0; };
    if (!has_peer(step.output) || !std::all_of(step.inputs.begin(), step.inputs.end(), has_peer))
      throw DataError("prove", path, ": ", program.value(step.output).name, " has no peer");
    by_layer.add(alone(program, step, match, peer));
  }
  std::vector<int32_t> y(static_cast<size_t>(n * model.output_size()));
  model.run_codes(std::span<const uint8_t>(peer[0].codes), std::span<int32_t>(y));
  const PeerCodes& last = peer.back();
  const int32_t zero = program.value(program.outputs[0]).params->zero_point[0];
  int64_t changes = 0;
  std::vector<uint8_t> own;
  for (size_t i = 0; i < y.size(); ++i) {
    own.push_back(static_cast<uint8_t>(y[i] + zero));
    whole.add(own[i], last.codes[i]);
  }
  const auto classes = static_cast<size_t>(last.size);
  for (size_t i = 0; i < own.size(); i += classes) {
    changes += largest(std::span(own).subspan(i, classes)) !=
               largest(std::span(last.codes).subspan(i, classes));
  }

  const auto accuracy = [&](const IntegerModel& now) {
    std::vector<int32_t> labels(static_cast<size_t>(images.test.size()));
    int64_t right = 0;
    for (int64_t i = 0; i < images.test.size(); i += 500) {
      const Batch batch = images.test.batch(i, std::min<int64_t>(i + 500, images.test.size()));
      std::vector<int32_t> found(batch.labels.size());
      now.classify_codes(batch.bytes(), found);
      for (size_t k = 0; k < found.size(); ++k) right += found[k] == batch.labels[k];
    }
    return 100.0 * static_cast<double>(right) / static_cast<double>(images.test.size());
  };
  const double before = accuracy(model);
  net.train();
  train_on(net, images, training, 0);
  net.eval();
  const double after = accuracy(quant::convert(net, example));
  std::printf("%-24s %10lld %6lld %9.6f %4lld %8lld %6lld %4lld %7lld %9.2f %9.2f\n",
              std::filesystem::path(path).stem().c_str(),
              static_cast<long long>(by_layer.codes),
              static_cast<long long>(by_layer.different),
              by_layer.share(),
              static_cast<long long>(by_layer.most),
              static_cast<long long>(whole.codes),
              static_cast<long long>(whole.different),
              static_cast<long long>(whole.most),
              static_cast<long long>(changes),
              before,
              after);
  std::fflush(stdout);
  constexpr double kMostShare = 0.1;  // percent
  constexpr double kMostLoss = 0.5;   // percent of the images
  return by_layer.share() <= kMostShare && by_layer.most <= 1 && after >= before - kMostLoss;
}

std::vector<float> read_floats(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

/// Against the results of tests/proofs/qonnx_rules.py: in floats, to a few roundings; in integers,
/// biases are rounded to the scale of the products, so codes of few bits may differ.
bool prove_rules(const std::string& path) {
  const std::string folder = path.substr(0, path.size() - 5);
  const std::vector<float> inputs = read_floats(folder + "/x.f32");
  const std::vector<float> right = read_floats(folder + "/y.f32");
  quant::QuantizedOnnx imported = quant::import_quantized_onnx(path);
  Network& net = imported.network;
  std::vector<int64_t> shape = net.inputs()[0].shape;
  int64_t sample = 1;
  for (const int64_t extent : shape) sample *= extent;
  const int64_t n = static_cast<int64_t>(inputs.size()) / sample;
  shape.insert(shape.begin(), n);
  const Tensor x = Tensor::from(Shape(shape), inputs);
  const NoGrad no_grad;
  float largest_value = 0.0f;
  for (const float v : right) largest_value = std::max(largest_value, std::abs(v));
  const auto classes = static_cast<int64_t>(right.size()) / n;
  const auto class_of = [&](const float* row) {
    return std::max_element(row, row + classes) - row;
  };
  double worst[2] = {0.0, 0.0};
  int64_t changes[2] = {0, 0};
  for (const bool in_integers : {false, true}) {
    quant::set_simulation(net,
                          in_integers ? quant::Simulation::kInteger : quant::Simulation::kFloat);
    const Tensor y = net(x);
    const float* const own = y.data();
    for (size_t i = 0; i < right.size(); ++i)
      worst[in_integers] =
          std::max(worst[in_integers], static_cast<double>(std::abs(own[i] - right[i])));
    for (int64_t i = 0; i < n; ++i)
      changes[in_integers] += class_of(own + i * classes) != class_of(right.data() + i * classes);
  }
  std::printf(
      "%-24s by the rules of Quant: largest difference in floats %.3g of %.3g, %lld classes of "
      "%lld change; in integers %.3g, %lld classes\n",
      std::filesystem::path(path).stem().c_str(),
      worst[0],
      static_cast<double>(largest_value),
      static_cast<long long>(changes[0]),
      static_cast<long long>(n),
      worst[1],
      static_cast<long long>(changes[1]));
  return worst[0] <= 1e-5 * static_cast<double>(largest_value);
}

}  // namespace

bool prove_quantized(const std::string& folder, const Images& images, const Training& training) {
  std::printf(
      "Files of ONNX Runtime's quantizer: codes against its integer kernels, each layer on the\n"
      "same codes and the whole network, changes of the first class, and accuracy before and "
      "after\n"
      "%lld epochs of QAT:\n",
      static_cast<long long>(training.qat_epochs));
  std::printf("%-24s %10s %6s %9s %4s %8s %6s %4s %7s %9s %9s\n",
              "file",
              "by layer",
              "differ",
              "%",
              "most",
              "outputs",
              "differ",
              "most",
              "classes",
              "before %",
              "after %");
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".onnx") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  bool held = !files.empty();
  for (const std::string& file : files) {
    const bool has_rules = std::filesystem::exists(file.substr(0, file.size() - 5) + "/y.f32");
    held = (has_rules ? prove_rules(file) : prove_file(file, images, training)) && held;
  }
  return held;
}

}  // namespace quantrain::proofs
