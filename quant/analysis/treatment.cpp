#include <algorithm>
#include <cmath>
#include <ostream>

#include "framework/core/text_table.hpp"
#include "quant/analysis/number_text.hpp"
#include "quant/analysis/treat.hpp"

// What a Treatment says about itself; treat.cpp makes it.
namespace quantrain::quant {
namespace {

// Of a recall or an error to targets: what is noise.
constexpr double kStandardErrors = 2.0;

int64_t samples_of(const ConfusionMatrix& matrix, int64_t label) {
  int64_t samples = 0;
  for (int64_t p = 0; p < matrix.classes(); ++p) samples += matrix.count(label, p);
  return samples;
}

}  // namespace

std::vector<std::string> Treatment::worse() const {
  std::vector<std::string> all;
  if (before.classes && after.classes) {
    const ConfusionMatrix& floats = before.classes->floats;
    for (int64_t c = 0; c < floats.classes(); ++c) {
      const auto n = static_cast<double>(samples_of(floats, c));
      if (n == 0.0) continue;
      // Noise can favor a class: nothing is lost if its recall falls to that in float.
      const double was = std::min(floats.recall(c), before.classes->integers.recall(c));
      // One sample more on each side, so that a recall of 1 has an error, too.
      const double p = (n * was + 1.0) / (n + 2.0);
      if (was - after.classes->integers.recall(c) > kStandardErrors * std::sqrt(p * (1.0 - p) / n))
        all.push_back("recall of class " + std::to_string(c));
    }
  }
  // The relative standard error of a root mean square of n normal values is 1 / sqrt(2 n).
  const double growth =
      1.0 +
      kStandardErrors / std::sqrt(2.0 * static_cast<double>(std::max<int64_t>(before.samples, 1)));
  for (size_t i = 0; i < std::min(before.outputs.size(), after.outputs.size()); ++i) {
    const OutputDiagnosis& was = before.outputs[i];
    const std::optional<double>& is = after.outputs[i].target_rmse_integers;
    if (was.target_rmse_float && was.target_rmse_integers && is &&
        *is > growth * std::max(*was.target_rmse_float, *was.target_rmse_integers))
      all.push_back("error of " + after.outputs[i].name + " to its target");
  }
  return all;
}

bool Treatment::cured() const {
  if (!refusal.empty() || !worse().empty()) return false;
  return std::none_of(after.findings.begin(), after.findings.end(), [&](const Finding& other) {
    return other.kind == finding.kind && other.layer == finding.layer;
  });
}

std::ostream& operator<<(std::ostream& stream, const Treatment& treatment) {
  const Diagnosis& before = treatment.before;
  const Diagnosis& after = treatment.after;
  const std::string& layer = treatment.finding.layer;
  stream << to_string(treatment.finding.kind) << " in \"" << layer << "\": ";
  if (!treatment.refusal.empty()) return stream << "not treated: " << treatment.refusal << '\n';
  stream << treatment.done;
  if (const std::vector<std::string> worse = treatment.worse(); !worse.empty()) {
    stream << " (worse: ";
    for (size_t i = 0; i < worse.size(); ++i) stream << (i == 0 ? "" : ", ") << worse[i];
    stream << ')';
  } else if (!treatment.cured()) {
    stream << " (still found)";
  }
  stream << '\n';
  TextTable table("lrr");
  table.add({"", "before", "after"});
  const auto row = [&](const std::string& name, double was, double is) {
    table.add({name, number_text(was), number_text(is)});
  };
  if (!treatment.encoded_again) {
    row(layer + ", dB", before.layer(layer).snr_accumulated, after.layer(layer).snr_accumulated);
    for (size_t i = 0; i < after.outputs.size(); ++i)
      row(after.outputs[i].name + ", rmse / spread",
          before.outputs[i].relative,
          after.outputs[i].relative);
  }
  for (size_t i = 0; i < after.outputs.size(); ++i) {
    const std::optional<double>& was = before.outputs[i].target_rmse_integers;
    const std::optional<double>& is = after.outputs[i].target_rmse_integers;
    if (was && is) row(after.outputs[i].name + ", rmse to target", *was, *is);
  }
  if (before.classes && after.classes) {
    const ConfusionMatrix& was = before.classes->integers;
    const ConfusionMatrix& is = after.classes->integers;
    row("accuracy", was.accuracy(), is.accuracy());
    for (int64_t c = 0; c < was.classes(); ++c)
      row("recall of class " + std::to_string(c), was.recall(c), is.recall(c));
  }
  return stream << table;
}

}  // namespace quantrain::quant
