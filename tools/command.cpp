#include "tools/command.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "framework/core/version.hpp"
#include "tools/flags.hpp"

namespace quantrain::tools {
namespace {

constexpr Verb kVerbs[] = {
    {"info", "lists layers, shapes, parameters, multiply-adds, and the size on a device", info},
    {"plan", "says what becomes of each layer, or every reason why not", plan},
    {"quantize", "quantizes a trained network, without training", quantize},
    {"finetune", "trains a network with quantization (QAT)", finetune},
    {"diagnose", "finds where quantization loses what, and what helps", diagnose},
    {"run", "computes classes, outputs or integers for data", run},
    {"compare", "compares two models, layer by layer", compare},
    {"export", "writes a model as C99 or ONNX", export_model},
    {"bench", "measures the time of a model, by layer", bench},
    {"completion", "prints the completions for a shell", completion},
    {"man", "prints the manual page", man},
};

}  // namespace

std::span<const Verb> verbs() { return kVerbs; }

void declare(CLI::App& program, std::vector<Run>& runs) {
  program.name("quantrain");
  program.description(
      "Makes integer networks for devices of trained networks: quantizes them, trains them on, "
      "finds what quantization loses, and writes C99 or ONNX.");
  program.set_version_flag("--version", std::string("quantrain ") + version());
  program.require_subcommand(0, 1);
  program.footer(
      "MODEL is an .onnx or .tflite file, a network of save_network(), or an integer model.\n"
      "Status: 0, or 1 if a verb failed, or 2 if the call was wrong.\n"
      "quantrain VERB --help shows the flags of a verb and an example.");
  for (const Verb& verb : verbs()) {
    CLI::App* const line =
        program.add_subcommand(std::string(verb.name), std::string(verb.summary));
    runs.push_back(verb.declare(*line));
  }
}

std::vector<std::string> choices(std::string_view placeholder) {
  return placeholder.find('|') == std::string_view::npos ? std::vector<std::string>{}
                                                         : parts(placeholder, '|');
}

}  // namespace quantrain::tools
