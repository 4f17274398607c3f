#include "tools/words.hpp"

#include <optional>
#include <vector>

namespace quantrain::tools {
namespace {

/// In `from`, $ is any text within a line, and after [ any without ]; # is a number. $1, $2 in `to`
/// are what they were. Neither has quotes, which JSON and HTML write in other ways. No phrase
/// starts with $ or #, and none ends with $. The first that fits is taken, so that long ones stand
/// before their parts.
struct Phrase {
  std::string_view from;
  std::string_view to;
};

constexpr Phrase kPhrases[] = {
    // The doctor.
    {", or with percentile_range(rows, features) as their range, and train for it",
     " (--mean, --deviation, --range), by quantrain quantize or finetune"},
    {", or declare their range, QConfig::input_range = Range{$f, $f}, and train for it",
     ", or quantize or finetune again with their range, --range $1,$2"},
    {"Range{$f, $f} as the input's range", "quantize or finetune again with --range $1,$2"},
    {"declare the data's own range: Dataset::from_floats(shape, values, labels, classes, "
     "Range{$f, $f})",
     "quantize or finetune again with the data's own range: --range $1,$2"},
    {": features = fit_percentiles(rows, columns), range = percentile_range(rows, features), "
     "Dataset::from_floats(shape, rows, labels, classes, range, features, Outside::kSaturate), "
     "and train. For the network as it is, keep its features and use Range{$f, $f}",
     ": quantize or finetune again with --range $1,$2"},
    {", such as feature_range(rows, features)", ", by --range"},
    {"config.layers[$].activation.observer = MinMaxOptions{}, prepare and calibrate with data "
     "that hold these values",
     "quantize again with --observer min_max and data that hold these values"},
    {"config.layers[$].weight.estimator = Estimator::kClamped", "leave --learned away"},
    {"config.layers[$].activation.estimator = Estimator::kClamped", "leave --learned away"},
    {"config.layers[$].weight.per_channel = true", "quantize again without --per-tensor"},
    {"config.layers[$].activation.observer = PercentileOptions{}",
     "quantize again with --observer percentile"},
    {"config.layers[$].activation.observer = MinMaxOptions{}",
     "quantize again with --observer min_max"},
    {"config.layers[$].weight.bits = #", "more bits for its weights: --layer $1=$2"},
    {"config.layers[$].activation.bits = #", "more bits for its values: --layer $1=WEIGHTS/$2"},
    {" (fit_mean_std)", ""},
    {"declare a range that holds these rows: QConfig::input_range = Range{$f, $f}",
     "quantize or finetune again with a range that holds these rows: --range $1,$2"},
    {"calibrate with data that hold these rows: calibrate(net, DataLoader{..}); treat() does it. "
     "If an observer leaves them out, ",
     "quantize again with data that hold these rows, and more samples by --calibration. If they "
     "are left out, "},
    {"calibrate with data like these: calibrate(net, DataLoader{..}); treat() does it",
     "quantize again with data like these"},
    {" treat() does", " the C++ library's treat does"},
    {"(treat() does", "(the C++ library's treat does"},
    {"train with prepare_qat, so that", "train with quantrain finetune, so that"},
    {"to_json() has them", "--json has them"},

    // Networks that are not, or cannot be, quantized.
    {"LayerConfig::quantize = false keeps a layer in float; it can be trained, but not converted",
     ""},
    {"FakeQuantize has no parameters: ", "its range is unknown: "},
    {"it is frozen and was not calibrated: call quant::calibrate(net, batches) first",
     "the network has seen no data: quantize the network of floats again"},
    {"it was not calibrated: call quant::calibrate(net, batches), or train in training mode, first",
     "the network has seen no data: quantrain finetune trains it"},
    {"the parameters of this FakeQuantize were given, so it cannot be calibrated",
     "its parameters were given, so that no data choose them"},
    {"FakeQuantize is frozen, and its range stays: set_phase(Phase::kTraining) lets it move, and "
     "a Calibration chooses it anew, unless its scale is learned",
     "its range is frozen, and stays"},
    {" has no place for a FakeQuantize: $registered by add(name, layer) in the constructor",
     " has no place for a range of its own"},
    {": it drops values because its layer is in training mode; call eval(), and register the "
     "layer by add(name, layer) in the constructor",
     ": export the network in evaluation mode"},
    {" in the recorded graph: every operation must end with return record<ItsNode>(y, {x})", ""},
    {" in the recorded graph: an earlier operation made a new tensor without recording it; end "
     "that operation with return record<ItsNode>(y, {x}) (docs/adding_an_operation.md)",
     ""},
    {": put one FakeQuantize, which both read, into slots().output", ""},
    {"; put a FakeQuantize into slots().output of the layer before", ""},
    {": prepare_ptq or prepare_qat comes first", ": quantrain quantize or finetune comes first"},
    {": configure the layer with quantize = true in the QConfig",
     ": set its quantize to true in the file of --config"},
    {": set WeightConfig::scheme to kSymmetric",
     ": set their scheme to symmetric in the file of --config"},
    {" (WeightConfig::scheme)", ": set their scheme to symmetric in the file of --config"},
    {"or keep the integers of 32 bits (output_bits)",
     "or keep the integers of 32 bits (output_bits in the file of --config)"},
    {"and QConfig::input_range says [$]; the data declare the range: leave input_range out",
     "and input_range in the file of --config says [$1]: leave it away, and use --range"},
    {"pass the input of a Dataset's or DataLoader's batch, which carries its range, or set "
     "QConfig::input_range",
     "say it with --range"},
    {"QConfig::input_range", "input_range of --config"},
    {"QConfig.input_range", "input_range of --config"},
    {"config.input_range", "input_range of --config"},
    {"[QConfig] ", "[configuration] "},
    {" outside of the layers BatchNorm1d and BatchNorm2d cannot be prepared, because its "
     "statistics are unknown: use one of these layers",
     " cannot be prepared, because its statistics are unknown"},

    // Data.
    {": declare the data as you declared the example for prepare_qat or prepare_ptq",
     ": say what they mean by --range, --mean and --deviation as when it was made"},
    {": encode raw values with the data set that declares the features (Dataset::from_floats), "
     "and give the network its batches",
     ""},
    {". Subtract an offset: declare features (InputFeatures) with offset $ and scale 1, or those "
     "of fit_mean_std(), and the range of the shifted values, such as [$]",
     ": subtract an offset, by --mean $1 and --deviation 1"},
    {"pass values in the units of the training data, or encode them with Outside::kSaturate "
     "(SampleArray::encoded)",
     "say what the values mean with --range, --mean and --deviation"},
    {"pass values in the units of the training data, or call quant::set_outside(net, "
     "Outside::kSaturate)",
     "say what the values mean with --range, --mean and --deviation"},
    {"pass values in the units of the training data, or Outside::kSaturate",
     "say what the values mean with --range, --mean and --deviation"},
    {": use classes() for labels that are text", ""},
    {"; if it means that there is no label, set ignore_index", ""},
    {", or keep it with scale 1 (ConstantFeature::kKeep)", ""},

    // Training.
    {"the gradients need clip_grad_norm()", "the gradients are too large: try a smaller --lr"},
    {"; to step anyway, set the option allow_nonfinite", ""},
    {": pass net.parameters(); a module's parameters are those of the layers that its constructor "
     "registers by add(name, layer), not those of plain members",
     ": the network has nothing to train"},
    {": call eval() before the network predicts; if a data set leaves one sample for the last "
     "batch, set LoaderOptions::drop_last or merge_last",
     ": take a larger --batch"},
    {": set LoaderOptions::drop_last to leave that sample out, or merge_last to add it to the "
     "batch before",
     ": take another --batch"},
    {"; to continue from the checkpoint before it, set skip_damaged or remove the file",
     "; to go on from the checkpoint before it, remove the file"},

    {"first_bits are for training: leave them out, or use prepare_qat",
     "first_bits are for training: leave them out, or use quantrain finetune"},
    {": lower its bits before freeze(), or leave them", ": --frozen-epochs 0 lets them fall"},
    {": set weight.estimator = Estimator::kLearned",
     ": learn scales, by --learned or the file of --config"},

    // Files.
    {": a program's own needs register_layer or register_operation first",
     ": it belongs to another program; export the network there, or its integer model"},
    {": if it is your own, call register_layer or register_operation first",
     ": it belongs to another program; export the network there, or its integer model"},
    {": give it in OnnxOptions::shapes", ": give it by --onnx-shape NAME=N,..."},
    {"OnnxOptions::outputs", "--onnx-outputs"},
    {" (OnnxOptions::described_constants is the limit)", ""},
    {"more than QuantizedOnnxOptions::most_elements, ", "more than the most that are taken, "},
    {": give its range in QuantizedOnnxOptions::ranges", ": give its range by --onnx-range"},
    {"QuantizedOnnxOptions::choose_anew chooses this anew:",
     "--onnx-anew chooses this anew, from the data of quantize or finetune:"},
    {": read this network of floats with import_onnx(), and prepare it", ""},
    {"This library exported it: load_exported_onnx() makes its integer program again", ""},
    {": export_onnx() did not write it from an integer program: it",
     ": quantrain export did not write it from an integer model: it"},
};

bool is_of_number(char letter) { return letter >= '0' && letter <= '9'; }

/// Where a phrase that starts at `at` ends, and what its wildcards are; nothing if it is not there.
std::optional<size_t> match(std::string_view text,
                            size_t at,
                            std::string_view pattern,
                            std::vector<std::string_view>& parts) {
  parts.clear();
  bool in_brackets = false;
  while (!pattern.empty()) {
    const size_t start = at;
    if (pattern[0] == '#') {
      while (at < text.size() && is_of_number(text[at])) ++at;
      if (at == start) return std::nullopt;
      parts.push_back(text.substr(start, at - start));
      pattern.remove_prefix(1);
    } else if (pattern[0] == '$') {
      const std::string_view next = pattern.substr(1, pattern.find_first_of("$#", 1) - 1);
      at = text.find(next, at);
      if (at == std::string_view::npos) return std::nullopt;
      parts.push_back(text.substr(start, at - start));
      if (parts.back().find_first_of(in_brackets ? "]\n" : "\n") != std::string_view::npos)
        return std::nullopt;
      pattern.remove_prefix(1);
    } else {
      const std::string_view literal = pattern.substr(0, pattern.find_first_of("$#"));
      if (text.substr(at, literal.size()) != literal) return std::nullopt;
      at += literal.size();
      in_brackets = literal.back() == '[';
      pattern.remove_prefix(literal.size());
    }
  }
  return at;
}

std::string filled(std::string_view to, const std::vector<std::string_view>& parts) {
  std::string result;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == '$' && i + 1 < to.size() && is_of_number(to[i + 1])) {
      result += parts[static_cast<size_t>(to[++i] - '1')];
    } else {
      result += to[i];
    }
  }
  return result;
}

}  // namespace

std::string in_own_words(std::string_view text) {
  std::string result(text);
  std::vector<std::string_view> parts;
  for (const Phrase& phrase : kPhrases) {
    const std::string_view start = phrase.from.substr(0, phrase.from.find_first_of("$#"));
    for (size_t at = result.find(start); at != std::string::npos; at = result.find(start, at)) {
      const std::optional<size_t> end = match(result, at, phrase.from, parts);
      if (!end) {
        at += start.size();
        continue;
      }
      const std::string said = filled(phrase.to, parts);
      result.replace(at, *end - at, said);
      at += said.size();
    }
  }
  return result;
}

}  // namespace quantrain::tools
