// quantrain diagnose: where quantization loses what, and what helps.
#include <CLI/CLI.hpp>
#include <memory>

#include "framework/core/file.hpp"
#include "framework/core/text_stream.hpp"
#include "quant/analysis/diagnose.hpp"
#include "quant/analysis/number_text.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tools/command.hpp"
#include "tools/data.hpp"
#include "tools/flags.hpp"
#include "tools/model.hpp"
#include "tools/output.hpp"
#include "tools/words.hpp"

namespace quantrain::tools {
namespace {

struct DiagnoseFlags {
  ModelFlags model;
  DataFlags data;
  BitsFlags bits;
  std::string page;
  Common common;
};

/// As the library's advice says it.
std::string range_text(const std::string& low, const std::string& high) {
  return "Range{" + low + "f, " + high + "f}";
}

std::string number(float value) {
  TextStream text;
  text << value;
  return std::move(text).str();
}

/// The library advises ranges of what the network sees, z. --range is of the data's own values.
void advise_raw_ranges(quant::Diagnosis& diagnosis, const Samples& samples) {
  const Reading& reading = samples.reading;
  const bool is_bytes = !samples.data->bytes.empty();
  if (reading.features.empty() && !is_bytes) return;
  for (quant::Finding& finding : diagnosis.findings) {
    const quant::LayerDiagnosis& layer = diagnosis.layer(finding.layer);
    for (const Range& z : {layer.floats.range, layer.usual}) {
      const std::string seen = range_text(quant::number_text(z.min), quant::number_text(z.max));
      const size_t at = finding.advice.find(seen);
      if (!layer.is_input || at == std::string::npos) continue;
      const Range x = raw_range(z, reading.features);
      const bool exists = x.min < x.max;
      finding.advice.replace(
          at,
          seen.size(),
          exists ? range_text(number(x.min), number(x.max)) : range_text("LOW", "HIGH"));
      if (!reading.features.empty()) finding.advice += ", of values before --mean and --deviation";
      // Of bytes, the flag also says what 0 and 255 mean.
      if (is_bytes && !(x == reading.raw)) finding.advice += ", of samples saved as floats";
      break;
    }
  }
}

void diagnose_model(const DiagnoseFlags& options) {
  options.common.apply();
  const quant::QConfig config = options.bits.read();
  check_outputs({{"--page", options.page}},
                {options.model.path, options.data.path, options.data.target, options.bits.config});
  Model model = open_model(options.model);
  if (model.kind == Model::Kind::kInteger)
    throw DataError(model.path,
                    "holds integers only: give the network that it was made of (quantrain quantize "
                    "--network FILE keeps it)");
  if (model.kind == Model::Kind::kPrepared && options.bits.given())
    throw WrongCall("--bits", kOnlyForFloats, "; ", model.path, " is prepared already");
  const Samples samples(options.data, model);
  const int64_t count = samples.data->size;
  if (model.kind == Model::Kind::kFloat) {
    describe(model, samples);
    prepare(*model.network, model, config, false);
    model.kind = Model::Kind::kPrepared;
    constexpr int64_t kCalibration = 1024;
    quant::calibrate(*model.network, samples.loader(model, kCalibration, 64));
  }
  quant::Diagnosis diagnosis = quant::diagnose(*model.network,
                                               samples.loader(Form::kCodes, {}, {.batch = 64}),
                                               {.samples = std::min<int64_t>(count, 1024)});
  advise_raw_ranges(diagnosis, samples);
  if (!options.page.empty())
    write_files(
        [&] { write_file(options.page, in_own_words(diagnosis.to_html(options.model.path))); });
  Report warnings;
  warn_of_saturation(samples, warnings);
  warnings.print_warnings();
  if (options.common.json) return print(warnings.json_before(diagnosis.to_json()));
  TextStream text;
  text << diagnosis;
  print(std::move(text).str());
}

}  // namespace

Run diagnose(CLI::App& line) {
  const auto options = std::make_shared<DiagnoseFlags>();
  options->model.declare(line);
  options->data.declare(line);
  options->bits.declare(line);
  flag(line, "--page", options->page, "FILE", "the findings with pictures, as an HTML page");
  options->common.declare(line);
  example(line, "  quantrain diagnose prepared.safetensors --data images/ --page doctor.html");
  return [options] { diagnose_model(*options); };
}

}  // namespace quantrain::tools
