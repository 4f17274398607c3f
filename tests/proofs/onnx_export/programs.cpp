// Writes files for scripts/prove onnx_export: exported networks, inputs, and what the engine
// computes.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "examples/tiny_networks.hpp"
#include "framework/core/parallel.hpp"
#include "framework/data/dataset.hpp"
#include "quant/export/onnx/load_exported.hpp"
#include "quant/export/onnx/qdq_differences.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/quant/export/onnx_run.hpp"
#include "tests/quant/networks.hpp"

namespace quantrain::proofs {
namespace {

using quant::test::OnnxCases;

constexpr int64_t kBatch = 250;        // samples that ONNX Runtime gets together
constexpr int64_t kLayerImages = 200;  // for the comparison of single layers
constexpr int64_t kCalls = 500;        // that are timed

/// The median time of a call of one sample with one thread, in microseconds.
double engine_time(const IntegerModel& model, const std::vector<uint8_t>& codes) {
  set_threads(1);
  const auto size = static_cast<size_t>(model.input_shape().elements());
  std::vector<int32_t> y(static_cast<size_t>(model.output_size()));
  std::vector<double> times;
  for (int64_t i = 0; i < kCalls; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    model.run_codes({codes.data(), size}, y);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    times.push_back(took.count());
  }
  set_threads(0);
  std::nth_element(times.begin(), times.begin() + kCalls / 2, times.end());
  return times[kCalls / 2];
}

struct Writer {
  std::string folder;
  OnnxCases exact{make("exact")}, qdq{make("qdq")}, layers{make("layers")};

  std::string make(const std::string& name) const {
    std::filesystem::create_directories(folder + "/" + name);
    return folder + "/" + name;
  }

  /// A network, with some samples for the outputs; on a few, all steps are compared.
  void add(const std::string& name,
           const IntegerModel& model,
           const std::vector<uint8_t>& codes,
           int64_t samples,
           bool all_steps) {
    const integer::Program& program = model.program();
    const nlohmann::json more{{"name", name}, {"batch", kBatch}, {"time", kCalls}};
    exact.add(program, samples, codes, {}, more);
    const auto size = static_cast<size_t>(model.input_shape().elements());
    if (all_steps) {
      const auto few = static_cast<std::ptrdiff_t>(20 * size);
      exact.add(program, 20, {codes.begin(), codes.begin() + few}, {.all_steps = true});
    }
    add_reals(name, model, codes, samples, more);
    add_layers(program, codes);
    round_trip(name, program);
    std::printf("%s: engine %.1f us for a sample\n", name.c_str(), engine_time(model, codes));
  }

  void add_reals(const std::string& name,
                 const IntegerModel& model,
                 const std::vector<uint8_t>& codes,
                 int64_t samples,
                 nlohmann::json more) {
    const OnnxExportOptions options{
        .form = OnnxForm::kQdq, .input = OnnxInput::kCodes, .layout = OnnxLayout::kChannelsLast};
    std::vector<float> y(static_cast<size_t>(samples * model.output_size()));
    model.run_codes(codes, y);
    std::vector<int64_t> x_dims{samples}, y_dims{samples};
    const Shape& x = model.input_shape();
    const Shape& out = model.program().value(model.program().outputs[0]).shape;
    x_dims.insert(x_dims.end(), x.begin(), x.end());
    y_dims.insert(y_dims.end(), out.begin(), out.end());
    more.update({{"optimize", {"all"}},
                 {"classes", out.back()},
                 {"by", 1e30},
                 {"optimized", folder + "/qdq/" + name + ".optimized"}});
    qdq.add<uint8_t, float>(onnx_model(model.program(), options), x_dims, codes, y_dims, y, more);
  }

  /// Each step alone, fed the engine's codes.
  void add_layers(const integer::Program& program, const std::vector<uint8_t>& codes) {
    const IntegerModel model{integer::Program(program)};
    std::vector<std::vector<uint8_t>> values(program.values.size());
    const uint8_t* const x = codes.data();
    const int input = program.inputs[0];
    values[static_cast<size_t>(input)].assign(
        x, x + kLayerImages * program.value(input).shape.elements());
    model.trace(kLayerImages, {&x, 1}, [&](size_t step, const void* output) {
      const int id = program.steps[step].output;
      const auto* const from = static_cast<const uint8_t*>(output);
      if (program.value(id).is_codes())
        values[static_cast<size_t>(id)].assign(
            from, from + kLayerImages * program.value(id).shape.elements());
    });
    for (size_t i = 0; i < program.steps.size(); ++i) {
      const integer::Step& step = program.steps[i];
      if (std::holds_alternative<integer::View>(step.operation)) continue;
      std::vector<uint8_t> inputs;
      std::vector<int> seen;
      for (const int id : step.inputs) {
        if (std::find(seen.begin(), seen.end(), id) != seen.end()) continue;
        seen.push_back(id);
        const std::vector<uint8_t>& value = values[static_cast<size_t>(id)];
        inputs.insert(inputs.end(), value.begin(), value.end());
      }
      // ONNX Runtime's QLinearAdd multiplies codes by scales of 22 bits: a sum is off by up to
      // (255 + 255) 2^-22 of a step, so up to 2 (510) 2^-22 = 2.4e-4 of all sums may round to the
      // other code, besides those that any float32 rounds so.
      const bool is_sum = std::holds_alternative<integer::QuantizedAdd>(step.operation);
      layers.add(quant::test::only_step(program, i),
                 kLayerImages,
                 inputs,
                 {.form = OnnxForm::kQdq},
                 {{"optimize", {"all"}}, {"share", is_sum ? 3.4e-4 : 1e-4}});
    }
  }

  void round_trip(const std::string& name, const integer::Program& program) const {
    const std::string path = folder + "/" + name;
    int64_t bytes[3];
    const OnnxExportOptions all[] = {
        {}, {.form = OnnxForm::kQdq}, {.form = OnnxForm::kQdq, .int4_weights = true}};
    for (size_t i = 0; i < 3; ++i) {
      const std::string file = path + std::to_string(i) + ".onnx";
      export_onnx(program, file, all[i]);
      if (load_exported_onnx(file).program() != program)
        throw DataError("onnx_programs", file, " does not give the same program again");
      bytes[i] = static_cast<int64_t>(std::filesystem::file_size(file));
    }
    int64_t codes = 0, different = 0;
    for (const QdqDifference& d :
         qdq_differences(program, quant::test::random_samples(program, kBatch, 1))) {
      codes += d.codes;
      different += d.different;
    }
    std::printf(
        "%s: bytes: exact %lld, QDQ %lld, QDQ with int4 %lld; codes that will differ on "
        "random samples: %lld of %lld\n",
        name.c_str(),
        static_cast<long long>(bytes[0]),
        static_cast<long long>(bytes[1]),
        static_cast<long long>(bytes[2]),
        static_cast<long long>(different),
        static_cast<long long>(codes));
  }
};

/// Calibrated without training.
IntegerModel calibrated(const examples::Network& network) {
  Sequential net = network.make();
  std::vector<int64_t> extents{8};
  extents.insert(extents.end(), network.input.begin(), network.input.end());
  const Tensor x = quant::test::random_images(Shape(extents), 1);
  quant::prepare_ptq(net, x, quant::QConfig{});
  {
    const quant::Calibration calibration(net);
    net(x);
  }
  return quant::convert(net, x);
}

void write_random(Writer& writer, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto seed = static_cast<uint64_t>(i);
    quant::test::RandomNetwork network = quant::test::random_network(seed);
    const integer::Program program = quant::test::train_and_convert(network, seed).program();
    writer.exact.add(program, 100, {.all_steps = i < 20});
    writer.exact.add(integer::test::random_program(seed), 100, {.all_steps = i < 20});
  }
  writer.exact.add(integer::test::every_operation(), 100, {.all_steps = true});
}

}  // namespace
}  // namespace quantrain::proofs

int main(int argc, char** argv) try {
  using namespace quantrain;
  using namespace quantrain::proofs;
  CLI::App app{"Writes files for the proof of the ONNX exporter."};
  std::string folder, data;
  std::vector<std::string> models;
  int64_t images = 10000, random = 50, tiny = 4;
  app.add_option("folder", folder)->required();
  app.add_option("--data", data, "folder with IDX files");
  app.add_option("--images", images, "number of test images");
  app.add_option("--random", random, "number of random networks");
  app.add_option("--tiny", tiny, "how many of the four networks of MLPerf Tiny");
  app.add_option("models", models, "saved integer networks for the images");
  CLI11_PARSE(app, argc, argv);
  Writer writer{folder};
  if (!models.empty()) {
    const Dataset test = Dataset::mnist(data, Split::kTest).first(images);
    std::vector<uint8_t> codes;
    for (int64_t i = 0; i < test.size(); ++i) {
      const auto image = test.image(i);
      codes.insert(codes.end(), image.begin(), image.end());
    }
    for (const std::string& path : models) {
      const std::string name = std::filesystem::path(path).stem().string();
      writer.add(name, IntegerModel::load(path), codes, images, true);
    }
  }
  for (int64_t i = 0; i < tiny; ++i) {
    const examples::Network& network = examples::tiny_networks()[static_cast<size_t>(i)];
    const IntegerModel model = calibrated(network);
    const int64_t samples = std::max<int64_t>(kLayerImages, images);
    writer.add(network.name,
               model,
               quant::test::random_samples(model.program(), samples, 1),
               samples,
               true);
  }
  write_random(writer, random);
  writer.exact.write();
  writer.qdq.write();
  writer.layers.write();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "onnx_programs: %s\n", error.what());
  return 1;
}
