// Writes files for scripts/prove c99: C code of single layers and of random networks, and the
// values that the engine computes.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>

#include "framework/arithmetic/qparams.hpp"
#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "framework/data/dataset.hpp"
#include "framework/integer/dead_channels.hpp"
#include "quant/export/c99/export_c99.hpp"
#include "tests/proofs/c99/layers.hpp"
#include "tests/quant/random_network.hpp"

namespace quantrain::proofs {
namespace {

void write(const std::string& folder,
           const std::string& name,
           const integer::Program& program,
           int64_t samples,
           bool pack) {
  std::filesystem::create_directories(folder);
  const C99Options options{.name = name, .pack_weights = pack};
  write_c99(folder,
            export_c99(program, options),
            c99_test(program, quant::test::random_samples(program, samples, 1), options));
}

void write_layers(const std::string& folder,
                  const std::vector<int>& bits,
                  const std::string& only) {
  for (const Layer& layer : layers(bits)) {
    if (layer.name.find(only) == std::string::npos) continue;
    write(folder, layer.name, layer.program, 1, true);
    std::printf("%s\t%s\t%s\n",
                layer.name.c_str(),
                layer.description.c_str(),
                layer.activation_bits == 1 ? "1, 1" : std::to_string(layer.bits).c_str());
  }
}

// Every fourth network has unpacked weights; the others have packed weights.
void write_random(const std::string& folder, int64_t first, int64_t count, int64_t samples) {
  for (int64_t i = first; i < first + count; ++i) {
    const auto seed = static_cast<uint64_t>(i);
    quant::test::RandomNetwork network = quant::test::random_network(seed);
    const IntegerModel model = quant::test::train_and_convert(network, seed);
    const std::string name = "random_" + std::to_string(i);
    write(folder, name, model.program(), samples, i % 4 != 0);
    std::printf("%s\t%s\n", name.c_str(), network.description.c_str());
  }
}

template <class T>
void put(std::ofstream& file, const T* values, int64_t n) {
  file.write(reinterpret_cast<const char*>(values),
             static_cast<std::streamsize>(n * static_cast<int64_t>(sizeof(T))));
}

// Writes the file that images.c reads. It starts with the number of images and the number of traced
// steps. Then it has four parts for each image: the image's codes, a checksum for each traced step,
// the output, and the class. The checksum is that of the step's result. All steps that give codes
// are traced, except views. The steps are those of the network without its dead channels. The
// output and the class are those of the original network.
void write_expected(const std::string& path,
                    const IntegerModel& model,
                    const std::string& data,
                    int64_t count) {
  const IntegerModel live(integer::remove_dead_channels(model.program()));
  const integer::Program& program = live.program();
  const Dataset images = Dataset::mnist(data, Split::kTest).first(count);
  const auto traced = [&](const integer::Step& step) {
    return program.value(step.output).is_codes() &&
           !std::holds_alternative<integer::View>(step.operation);
  };
  const int32_t head[] = {
      static_cast<int32_t>(images.size()),
      static_cast<int32_t>(std::count_if(program.steps.begin(), program.steps.end(), traced))};
  std::ofstream file(path, std::ios::binary);
  put(file, head, 2);
  std::vector<int32_t> output(static_cast<size_t>(model.output_size())), result(1);
  for (int64_t i = 0; i < images.size(); ++i) {
    const auto image = images.image(i);
    put(file, image.data(), static_cast<int64_t>(image.size()));
    const uint8_t* const x = image.data();
    live.trace(1, {&x, 1}, [&](size_t s, const void* codes) {
      const integer::Step& step = program.steps[s];
      if (!traced(step)) return;
      uint32_t hash = 2166136261u;  // FNV-1a
      for (int64_t k = 0; k < integer::output_size(step.operation); ++k)
        hash = (hash ^ static_cast<const uint8_t*>(codes)[k]) * 16777619u;
      put(file, &hash, 1);
    });
    model.run_codes({image.data(), image.size()}, output);
    model.classify_codes({image.data(), image.size()}, result);
    put(file, output.data(), model.output_size());
    put(file, result.data(), 1);
  }
  if (!file.flush()) throw DataError(path, "cannot be written");
}

}  // namespace
}  // namespace quantrain::proofs

int main(int argc, char** argv) try {
  using namespace quantrain::proofs;
  CLI::App app{"Writes C for the proof of the C99 exporter."};
  app.require_subcommand(1);
  std::string folder;
  std::vector<int> bits{8, 4, 2};
  CLI::App& layers = *app.add_subcommand("layers", "networks of one layer; prints their names");
  layers.add_option("folder", folder)->required();
  layers.add_option("--bits", bits, "bits of the weights")
      ->check(CLI::Range(quantrain::kLeastBits, quantrain::kMostBits))
      ->delimiter(',');
  std::string only;
  layers.add_option("--only", only, "layers with this in their names");
  int64_t first = 0, count = 0;
  CLI::App& random = *app.add_subcommand("random", "random networks; prints their names");
  random.add_option("folder", folder)->required();
  random.add_option("count", count)->required()->check(CLI::Range(1, 100000));
  random.add_option("--first", first, "number of the first network")->check(CLI::Range(0, 100000));
  std::string model, data, file;
  CLI::App& expected =
      *app.add_subcommand("expected", "the values that the engine computes for images");
  expected.add_option("model", model, "a saved integer network")->required();
  expected.add_option("data", data, "folder with IDX files")->required();
  expected.add_option("count", count, "number of test images")->required();
  expected.add_option("file", file, "file to write")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (app.got_subcommand("layers")) write_layers(folder, bits, only);
  if (app.got_subcommand("random")) write_random(folder, first, count, 20);
  if (app.got_subcommand("expected"))
    write_expected(file, quantrain::IntegerModel::load(model), data, count);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "c99_programs: %s\n", error.what());
  return 1;
}
