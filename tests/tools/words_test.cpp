// The program's messages name its flags, not the library's functions.
#include "tools/words.hpp"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>

#include "tests/tools/program.hpp"

namespace quantrain {
namespace {

using tools::in_own_words;

/// What only C++ has: names with ::, calls, members of a QConfig.
const std::regex& cpp_words() {
  static const std::regex words(
      R"([A-Za-z_]\w*::\w+|\b\w+\([\w., {}*&]*\)|\bconfig\.|\bQConfig\b|prepare_[qp][at]t|\b\w+Options\b)");
  return words;
}

/// The string literals of a source; those that follow each other are one.
std::vector<std::string> literals_of(const std::string& source) {
  std::vector<std::string> all;
  bool follows = false;
  for (size_t i = 0; i < source.size(); ++i) {
    const char letter = source[i];
    if (source.compare(i, 2, "//") == 0 || letter == '#') {
      i = std::min(source.find('\n', i), source.size());
    } else if (letter == '\'' && source.compare(i + 1, 1, "\\") != 0 && i + 2 < source.size() &&
               source[i + 2] == '\'') {
      i += 2;
      follows = false;
    } else if (letter == '"') {
      std::string text;
      for (++i; i < source.size() && source[i] != '"'; ++i) {
        if (source[i] == '\\') {
          ++i;
          text += source[i] == 'n' ? '\n' : source[i];
        } else {
          text += source[i];
        }
      }
      follows ? all.back() += text : all.emplace_back(text);
      follows = true;
    } else if (letter != ' ' && letter != '\n') {
      follows = false;
    }
  }
  return all;
}

}  // namespace

TEST_CASE("advice for C++ is told in the program's words, in text, JSON and HTML", "[tools]") {
  const std::vector<std::pair<std::string, std::string>> said{
      {"normalize the data as for training: divide them by 255, or declare their range, "
       "QConfig::input_range = Range{0f, 255f}, and train for it",
       "normalize the data as for training: divide them by 255, or quantize or finetune again with "
       "their range, --range 0,255"},
      {"config.layers[\"3.branch.0\"].weight.bits = 8",
       "more bits for its weights: --layer \"3.branch.0\"=8"},
      {"\"advice\": \"config.layers[\\\"5\\\"].activation.observer = MinMaxOptions{}, prepare and "
       "calibrate with data that hold these values\"",
       "\"advice\": \"quantize again with --observer min_max and data that hold these values\""},
      {"config.layers[&quot;5&quot;].weight.per_channel = true",
       "quantize again without --per-tensor"},
      {"let the values choose the scale: config.layers[\"1\"].weight.estimator = "
       "Estimator::kClamped, or start again with a lower learning rate",
       "let the values choose the scale: leave --learned away, or start again with a lower "
       "learning rate"},
      {"[0] the range [1000, 1001] is too far from 0. Subtract an offset: declare features "
       "(InputFeatures) with offset 1000 and scale 1, or those of fit_mean_std(), and the range of "
       "the shifted values, such as [0, 1]",
       "[0] the range [1000, 1001] is too far from 0: subtract an offset, by --mean 1000 and "
       "--deviation 1"},
      {"declare the data's own range: Dataset::from_floats(shape, values, labels, classes, "
       "Range{-1f, 2.5f})",
       "quantize or finetune again with the data's own range: --range -1,2.5"},
      {"let only spikes saturate: features = fit_percentiles(rows, columns), range = "
       "percentile_range(rows, features), Dataset::from_floats(shape, rows, labels, classes, "
       "range, features, Outside::kSaturate), and train. For the network as it is, keep its "
       "features and use Range{0f, 3f}",
       "let only spikes saturate: quantize or finetune again with --range 0,3"},
      // Two settings on one line.
      {"config.layers[\"1\"].weight.per_channel = true, then config.layers[\"2\"].weight.bits = 8",
       "quantize again without --per-tensor, then more bits for its weights: --layer \"2\"=8"},
      {"config.layers[\"1\"].weight.bits = 8; config.layers[\"2\"].activation.bits = 6",
       "more bits for its weights: --layer \"1\"=8; more bits for its values: --layer "
       "\"2\"=WEIGHTS/6"},
      {"config.layers[\"1\"].weight.bits = 8; config.layers[\"2\"].weight.per_channel = true",
       "more bits for its weights: --layer \"1\"=8; quantize again without --per-tensor"},
      {"a layer named config.layers[5] stays", "a layer named config.layers[5] stays"},
      {"nothing to say", "nothing to say"},
      {"", ""}};
  for (const auto& [cpp, own] : said) CHECK(in_own_words(cpp) == own);
}

TEST_CASE("no message that reaches the program's users has words of C++", "[tools]") {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(QUANTRAIN_TEST_DATA) / "../..";
  // Those whose messages words.cpp rewrites, or that read what users give.
  std::vector<fs::path> sources;
  for (const char* const file : {"framework/autograd/ops/cross_entropy.cpp",
                                 "framework/autograd/ops/dropout.cpp",
                                 "framework/data/csv.cpp",
                                 "framework/data/features.cpp",
                                 "framework/data/npy.cpp",
                                 "framework/integer/input_encoding.cpp",
                                 "framework/integer/saturation.hpp",
                                 "framework/metrics/evaluate.cpp",
                                 "framework/optim/optimizer.cpp",
                                 "layers/network/layer_type.cpp",
                                 "layers/network/network_file.cpp",
                                 "layers/training/check_loss.cpp",
                                 "layers/training/checkpoint.cpp",
                                 "quant/analysis/diagnosis_text.cpp",
                                 "quant/analysis/findings.cpp",
                                 "quant/analysis/findings_outputs.cpp"})
    sources.push_back(root / file);
  for (const char* const folder : {"quant/prepare",
                                   "quant/prepare/methods",
                                   "quant/lowering",
                                   "quant/export/c99",
                                   "quant/export/onnx",
                                   "quant/import/onnx",
                                   "quant/import/tflite",
                                   "layers/onnx",
                                   "tools"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(root / folder))
      sources.push_back(entry.path());
  }
  const std::vector<std::string> exempt{
      // Parts of phrases that the test above shows whole.
      " and scale 1, or those of fit_mean_std()",
      "declare the data's own range: Dataset::from_floats(",
      "let only spikes saturate: features = fit_percentiles(",
      // The program has parameters with gradients, one loss and float networks to export.
      "; make the optimizer from net.parameters() after prepare_qat",
      "no parameter has a gradient: call backward()",
      "which requires a gradient, but is a parameter of neither",
      "the loss depends on no parameter of the network",
      "the loss depends on none of the optimizer's parameters",
      ", expected one number, such as mean(...)",
      "calibrating is a scope and cannot be set",
      ". The network is prepared for quantization: export the program",
      "which quant::import_quantized_onnx() reads",
      " in its forward()",
      ", registered by add(name, layer) in the constructor",
      // The program reads other types as floats, can prepare networks, and takes --int4 for
      // --to onnx-qdq only.
      ", expected bytes (u1): use floats()",
      "which this program cannot do: include quant/prepare/scopes.hpp",
      "int4 weights need OnnxForm::kQdq",
      // Python's.
      "torch.onnx.export",
      "numpy.ascontiguousarray(array)",
      // After config.layers["name"].
      ".activation.observer = MinMaxOptions{}",
      ".activation.observer = PercentileOptions{}",
      ".estimator = Estimator::kClamped"};
  const auto is_exempt = [&](const std::string& text) {
    return std::any_of(exempt.begin(), exempt.end(), [&](const std::string& part) {
      return text.find(part) != std::string::npos;
    });
  };
  int64_t count = 0;
  for (const fs::path& path : sources) {
    if (path.extension() != ".cpp" && path.extension() != ".hpp") continue;
    if (path.filename() == "words.cpp" || path.filename() == "completion.cpp") continue;
    for (const std::string& literal : literals_of(test::text_of(path.string()))) {
      if (literal.find(' ') == std::string::npos || is_exempt(literal)) continue;
      ++count;
      const std::string own = in_own_words(literal);
      INFO(path.lexically_relative(root).string() << ": " << own);
      CHECK_FALSE(std::regex_search(own, cpp_words()));
    }
  }
  CHECK(count > 500);
}

}  // namespace quantrain
