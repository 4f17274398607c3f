// Exports a saved network for a web page: writes its C99, and data.json with the class names, the
// steps, and images of the test split with the integers that the engine computes for them.
#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "examples/common/report.hpp"
#include "examples/common/training.hpp"
#include "framework/arithmetic/stored.hpp"
#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/data/dataset.hpp"
#include "framework/integer/dead_channels.hpp"
#include "framework/integer/integer_model.hpp"
#include "quant/export/c99/export_c99.hpp"

using namespace quantrain;
using integer::Program;
using integer::Value;
using Json = nlohmann::ordered_json;

namespace {

// The C functions are always called network_run and so on.
constexpr const char* kName = "network";
const Shape kImage{28, 28, 1};

/// What a data set's images show, and how they were made from larger images. The page turns
/// drawings into images in the same way.
struct Subject {
  std::string name;
  std::array<std::string, 10> classes;
  int64_t box;         ///< pixels of the longer side of the ink
  std::string center;  ///< what is centered: the ink's center of "mass", or its bounding "box"
  int64_t pen;         ///< width of a stroke on a drawing area of 280 x 280
  int64_t fill;        ///< byte inside closed outlines; 0: they stay empty
};

// LeCun et al. 1998.
const Subject kDigits{.name = "digits",
                      .classes = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"},
                      .box = 20,
                      .center = "mass",
                      .pen = 24,
                      .fill = 0};
// Xiao et al. 2017.
const Subject kGarments{.name = "garments",
                        .classes = {"T-shirt",
                                    "Trousers",
                                    "Pullover",
                                    "Dress",
                                    "Coat",
                                    "Sandal",
                                    "Shirt",
                                    "Sneaker",
                                    "Bag",
                                    "Ankle boot"},
                        .box = 28,
                        .center = "box",
                        .pen = 12,
                        .fill = 150};

Subject subject(const std::string& classes, const std::string& data) {
  if (classes == kDigits.name) return kDigits;
  if (classes == kGarments.name) return kGarments;
  const bool fashion = examples::dataset_name(data).find("fashion") != std::string::npos;
  return fashion ? kGarments : kDigits;
}

void check(const Program& program) {
  const bool single = program.inputs.size() == 1 && program.outputs.size() == 1;
  if (!single) {
    throw ExportError("browser",
                      "the page shows one input and one output, the network has ",
                      program.inputs.size(),
                      " and ",
                      program.outputs.size());
  }
  const Value& input = program.value(program.inputs[0]);
  const Value& output = program.value(program.outputs[0]);
  if (!(input.shape == kImage) || !input.features.empty() ||
      stored_zero_point(*input.params) != 0 || input.params->type.bits != 8) {
    throw ExportError("browser",
                      "the page draws images ",
                      kImage,
                      " whose bytes are their codes, the network takes ",
                      input.shape,
                      " of ",
                      *input.params,
                      ": train one of examples/networks.hpp");
  }
  if (output.shape.elements() != 10) {
    throw ExportError("browser",
                      "the page has names for 10 classes, the network gives ",
                      output.shape.elements(),
                      " outputs");
  }
}

std::string base64(std::span<const uint8_t> bytes) {
  const char* const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k)
      word = word << 8 | (i + k < bytes.size() ? bytes[i + k] : uint32_t{0});
    for (size_t k = 0; k < 4; ++k)
      text += i + k > bytes.size() ? '=' : digits[word >> (18 - 6 * k) & 63];
  }
  return text;
}

// FNV-1a, 32 bits.
uint32_t checksum(const uint8_t* bytes, int64_t n) {
  uint32_t hash = 2166136261u;
  for (int64_t i = 0; i < n; ++i) hash = (hash ^ bytes[i]) * 16777619u;
  return hash;
}

// Whether the exported C calls TRACE after this step. It calls TRACE after each step that writes
// codes, except a view, which does nothing. It does not trace accumulators: they are outputs of the
// network.
bool is_traced(const Program& program, const integer::Step& step) {
  return program.value(step.output).is_codes() &&
         !std::holds_alternative<integer::View>(step.operation);
}

Json steps(const Program& program) {
  Json list = Json::array();
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const integer::Step& step = program.steps[i];
    if (!is_traced(program, step)) continue;
    const Value& value = program.value(step.output);
    const QType& type = value.params->type;
    list.push_back({{"step", i},
                    {"operation", integer::type(step.operation)},
                    {"layer", value.name},
                    {"shape", std::vector<int64_t>(value.shape.begin(), value.shape.end())},
                    {"low", type.qmin() + stored_offset(type)},
                    {"zero", stored_zero_point(*value.params)},
                    {"high", type.qmax() + stored_offset(type)}});
  }
  return list;
}

// The first image of each class, with the engine's results.
Json examples_of(const IntegerModel& model, const Dataset& images) {
  const Program& program = model.program();
  Json list = Json::array();
  for (int32_t label = 0; label < 10; ++label) {
    int64_t at = 0;
    while (at < images.size() && images.label(at) != label) ++at;
    if (at == images.size()) continue;
    const auto pixels = images.image(at);
    std::vector<int32_t> outputs(10);
    model.run_codes(pixels, outputs);
    std::vector<uint32_t> checksums;
    const uint8_t* const input = pixels.data();
    model.trace(1, {&input, 1}, [&](size_t i, const void* codes) {
      const integer::Step& step = program.steps[i];
      if (is_traced(program, step))
        checksums.push_back(checksum(static_cast<const uint8_t*>(codes),
                                     program.value(step.output).shape.elements()));
    });
    list.push_back({{"image", at},
                    {"label", label},
                    {"pixels", base64(pixels)},
                    {"outputs", outputs},
                    {"checksums", checksums}});
  }
  return list;
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"Writes the C99 and the data of a page that runs a saved network in the browser."};
  std::string model_path, sources, page, classes, data = "/usr/share/datasets/fashion-mnist";
  app.add_option("model", model_path, "network that IntegerModel::save() wrote")->required();
  app.add_option("sources", sources, "folder for network.h and network.c")->required();
  app.add_option("page", page, "folder for data.json")->required();
  app.add_option("--data", data, "folder with the IDX files of the test split")
      ->capture_default_str();
  app.add_option("--classes", classes, "digits or garments; default: what the folder's name says")
      ->check(CLI::IsMember({kDigits.name, kGarments.name}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }

  // export_c99() removes dead channels. The page shows the steps of this smaller network.
  const IntegerModel model{integer::remove_dead_channels(IntegerModel::load(model_path).program())};
  const Program& program = model.program();
  check(program);
  const C99Sources c99 = export_c99(program, {.name = kName});
  const Dataset images = Dataset::mnist(data, Split::kTest);
  if (!(images.image_shape() == kImage)) {
    throw DataError(
        "browser", data, ": the page shows images ", kImage, ", got ", images.image_shape());
  }

  const Subject shown = subject(classes, data);
  const Value& output = program.value(program.outputs[0]);
  std::vector<double> scale = output.scale;
  if (output.is_codes()) scale = {static_cast<double>(output.params->scale[0])};
  scale.resize(10, scale[0]);
  const double accuracy = examples::accuracy(model, images);
  const Json json = {
      {"subject", shown.name},
      {"classes", shown.classes},
      {"drawing",
       {{"box", shown.box}, {"center", shown.center}, {"pen", shown.pen}, {"fill", shown.fill}}},
      {"accuracy", accuracy},
      {"images", images.size()},
      {"multiply_adds", integer::multiply_adds(program)},
      {"table_bytes", c99.table_bytes},
      {"scratch_bytes", c99.scratch_bytes},
      {"output",
       {{"scale", scale},
        {"zero_point", output.is_codes() ? stored_zero_point(*output.params) : 0}}},
      {"steps", steps(program)},
      {"examples", examples_of(model, images)}};

  write_c99(sources, c99);
  write_file(page + "/data.json", json.dump() + "\n");
  std::printf("%s: %.2f %% of %lld test images right\n",
              shown.name.c_str(),
              100.0 * accuracy,
              static_cast<long long>(images.size()));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
