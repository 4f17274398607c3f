#include "tools/command.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

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
      "MODEL is an .onnx or .tflite file, a saved network, or an integer model.\n"
      "Status: 0, or 1 if a verb failed, or 2 if the call was wrong.\n"
      "quantrain VERB --help shows the flags of a verb and an example.");
  for (const Verb& verb : verbs()) {
    CLI::App* const line =
        program.add_subcommand(std::string(verb.name), std::string(verb.summary));
    runs.push_back(verb.declare(*line));
  }
}

std::string nearest(std::string_view name, const std::vector<std::string>& names) {
  std::string best;
  size_t least = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& other : names) {
    // Levenshtein's distance, row by row; letters that changed places count once.
    std::vector<std::vector<size_t>> d(name.size() + 1, std::vector<size_t>(other.size() + 1));
    for (size_t i = 0; i <= name.size(); ++i) {
      for (size_t j = 0; j <= other.size(); ++j) {
        if (i == 0 || j == 0) {
          d[i][j] = i + j;
          continue;
        }
        const bool same = std::tolower(static_cast<unsigned char>(name[i - 1])) ==
                          std::tolower(static_cast<unsigned char>(other[j - 1]));
        d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same ? 0 : 1)});
        if (i > 1 && j > 1 && name[i - 1] == other[j - 2] && name[i - 2] == other[j - 1])
          d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
    if (d.back().back() < least) {
      least = d.back().back();
      best = other;
    }
  }
  return best;
}

std::vector<std::string> choices(std::string_view placeholder) {
  return placeholder.find('|') == std::string_view::npos ? std::vector<std::string>{}
                                                         : parts(placeholder, '|');
}

}  // namespace quantrain::tools
