#include <algorithm>
#include <cmath>
#include <string>

#include "framework/io/html.hpp"
#include "quant/analysis/diagnosis.hpp"
#include "quant/analysis/findings.hpp"
#include "quant/analysis/number_text.hpp"
#include "quant/analysis/sample_figure.hpp"

namespace quantrain::quant {
namespace {

using html::escaped;
using html::rectangle;

constexpr double kWidth = 320.0;
constexpr double kHeight = 80.0;
constexpr double kMostDecibels = 80.0;  // of a bar
constexpr int64_t kMostClasses = 12;    // of a confusion matrix

constexpr const char* kPageStyle = R"(
@page { margin: 12mm; }
* { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
h2 { font-size: 1.15em; margin: 1.6em 0 .4em; } p { margin: .3em 0; }
.finding { border-left: 4px solid #c62828; padding: .1em .8em; margin: .8em 0; break-inside: avoid; }
.well { border-left: 4px solid #2e7d32; padding: .1em .8em; }
.advice { font-family: ui-monospace, monospace; font-size: .85em; overflow-wrap: anywhere; }
.small { color: #555; font-size: .85em; }
.wide { overflow-x: auto; } table { font-size: .85em; } th, td { padding: 2px 4px; } td:first-child, th:first-child { text-align: left; }
.grid2 { display: grid; grid-template-columns: repeat(auto-fill, minmax(300px, 1fr)); gap: 1em; }
.card { break-inside: avoid; border-top: 1px solid #ccc; padding-top: .4em; }
.ends { display: flex; justify-content: space-between; }
.covered { fill: #1769aa22; } .count { fill: #1769aa; } .lost { fill: #c62828; }
.track { background: #eee; height: .55em; min-width: 60px; margin: 2px 0; }
.alone { background: #90b8d8; height: 100%; } .all { background: #1769aa; height: 100%; }
.key { display: inline-block; width: 1em; height: .7em; }
.card table { font-size: .8em; } td.cell, th.cell { text-align: center; min-width: 1.3em; padding: 1px; }
img { width: 112px; image-rendering: pixelated; }
)";

std::string decibels_text(double snr) { return std::isfinite(snr) ? number_text(snr) : "exact"; }

std::string bar(double snr, const char* css) {
  const double share = std::isfinite(snr) ? std::clamp(snr / kMostDecibels, 0.0, 1.0) : 1.0;
  return "<div class=\"track\"><div class=\"" + std::string(css) +
         "\" style=\"width:" + number_text(100.0 * share) + "%\"></div></div>";
}

bool has_own(const LayerDiagnosis& layer) {
  return layer.is_input || layer.weights || !layer.slot.empty();
}

void add_summary(const Diagnosis& d, std::string& page) {
  page += "<p>" + std::to_string(d.samples) + " samples. ";
  if (d.classes) {
    page += "Accuracy " + percent_text(d.classes->floats.accuracy()) + " in float, " +
            percent_text(d.classes->integers.accuracy()) + " in integers. ";
  }
  page += std::to_string(d.integers_different) +
          " integers of the outputs differ from the simulation.</p>\n";
  if (const LayerDiagnosis* layer = d.most_saturated()) {
    page += "<p>Most saturated: " + percent_text(layer->saturated()) + " in <b>" +
            escaped(layer->name) + "</b>. ";
  }
  if (const LayerDiagnosis* layer = d.noisiest()) {
    page += "Lowest signal-to-noise: " + decibels_text(layer->snr_accumulated) + " dB in <b>" +
            escaped(layer->name) + "</b>.";
  }
  page += "</p>\n<h2>Findings</h2>\n";
  if (d.findings.empty()) page += "<p class=\"well\">No finding.</p>\n";
  for (const Finding& finding : d.findings) {
    page += "<div class=\"finding\"><p><b>" + escaped(to_string(finding.kind)) + "</b> in <b>" +
            escaped(finding.layer) + "</b>, " + escaped(loss_text(finding, d)) + "</p><p>" +
            escaped(finding.cause) + "</p><p class=\"advice\">" + escaped(finding.advice) +
            "</p></div>\n";
  }
}

void add_layers(const Diagnosis& d, std::string& page) {
  page +=
      "<h2>Layers</h2>\n<p class=\"small\">Signal-to-noise in decibels: <span class=\"key "
      "alone\"></span> only this layer quantized, <span class=\"key all\"></span> everything "
      "quantized.</p>\n<div class=\"wide\"><table><tr><th>layer</th><th>saturated</th>"
      "<th>codes</th><th>alone</th><th>all</th><th></th></tr>\n";
  for (const LayerDiagnosis& layer : d.layers) {
    if (layer.floats.values == 0) continue;
    const bool own = has_own(layer);
    page += "<tr><td>" + escaped(layer.name) + " <span class=\"small\">" +
            escaped(layer.operation) + "</span></td><td>" +
            (layer.params && own ? percent_text(layer.saturated()) : "") + "</td><td>" +
            (layer.params ? std::to_string(layer.codes_used) : "int32") + "</td><td>" +
            (own ? decibels_text(layer.snr_alone) : "") + "</td><td>" +
            decibels_text(layer.snr_accumulated) + "</td><td>" +
            (own ? bar(layer.snr_alone, "alone") : "") + bar(layer.snr_accumulated, "all") +
            "</td></tr>\n";
  }
  page += "</table></div>\n";
}

/// Heights are logarithmic, so that rare values are seen. Parts outside of the codes are red.
std::string histogram(const LayerDiagnosis& layer) {
  const ValueDistribution& floats = layer.floats;
  const Range covered = layer.params ? layer.params->float_range() : floats.range;
  const double low = std::min(floats.range.min, covered.min);
  const double high = std::max(floats.range.max, covered.max);
  const double span = high > low ? high - low : 1.0;
  const auto x = [&](double value) { return kWidth * (value - low) / span; };
  std::string svg = "<svg viewBox=\"0 0 320 80\" role=\"img\">\n";
  if (layer.params) {
    svg += rectangle(x(covered.min), 0.0, x(covered.max) - x(covered.min), kHeight, "covered");
  }
  const int64_t most = *std::max_element(floats.counts.begin(), floats.counts.end());
  const double width = (static_cast<double>(floats.range.max) - floats.range.min) /
                       static_cast<double>(floats.counts.size());
  for (size_t i = 0; i < floats.counts.size(); ++i) {
    if (floats.counts[i] == 0) continue;
    const double from = floats.range.min + width * static_cast<double>(i);
    const double share =
        std::log1p(static_cast<double>(floats.counts[i])) / std::log1p(static_cast<double>(most));
    const double centre = from + 0.5 * width;
    const bool lost = layer.params && (centre < covered.min || centre > covered.max);
    svg += rectangle(x(from),
                     kHeight * (1.0 - share),
                     std::max(0.7, kWidth * width / span),
                     kHeight * share,
                     lost ? "lost" : "count");
  }
  return svg + "</svg>\n<div class=\"ends small\"><span>" + number_text(low) + "</span><span>" +
         number_text(high) + "</span></div>\n";
}

void add_histograms(const Diagnosis& d, std::string& page) {
  page +=
      "<h2>Values</h2>\n<p class=\"small\">Float values, counts on a logarithmic scale. Shaded: "
      "the range of the codes. Red: values that saturate.</p>\n<div class=\"grid2\">\n";
  for (const LayerDiagnosis& layer : d.layers) {
    if (layer.floats.counts.empty() || (!has_own(layer) && layer.params)) continue;
    page += "<div class=\"card\"><b>" + escaped(layer.name) + "</b> <span class=\"small\">" +
            escaped(layer.operation) + ", 99 % in [" + number_text(layer.floats.central.min) +
            ", " + number_text(layer.floats.central.max) + "]</span>\n" + histogram(layer) +
            "<p class=\"small\">";
    if (layer.params) {
      page += std::to_string(layer.codes_used) + " of " + std::to_string(layer.codes) +
              " codes, 99 % on " + number_text(layer.codes_central) + ". ";
    }
    if (layer.weights) {
      page += "Weights " + decibels_text(layer.weights->snr) + " dB, " +
              std::to_string(layer.weights->type.bits) + " bits. ";
    }
    if (layer.accumulators) {
      page += "Sums leave " + number_text(layer.accumulators->headroom_bits) + " bits of int32. ";
    }
    if (layer.constant > 0) {
      page += std::to_string(layer.constant) + " of " + std::to_string(layer.channels) +
              " channels constant. ";
    }
    page += "Makes " + percent_text(layer.noise_share) + " of the noise.</p></div>\n";
  }
  page += "</div>\n";
}

std::string confusion(const ConfusionMatrix& matrix, const char* title) {
  std::string table = "<div class=\"card\"><b>" + std::string(title) +
                      "</b><div class=\"wide\"><table><tr><th></th>";
  int64_t most = 1;
  for (int64_t label = 0; label < matrix.classes(); ++label) {
    table += "<th class=\"cell\">" + std::to_string(label) + "</th>";
    for (int64_t predicted = 0; predicted < matrix.classes(); ++predicted)
      most = std::max(most, matrix.count(label, predicted));
  }
  table += "</tr>\n";
  for (int64_t label = 0; label < matrix.classes(); ++label) {
    table += "<tr><td>" + std::to_string(label) + "</td>";
    for (int64_t predicted = 0; predicted < matrix.classes(); ++predicted) {
      const int64_t count = matrix.count(label, predicted);
      const char* color = label == predicted ? "23,105,170" : "198,40,40";
      const double share = 0.6 * static_cast<double>(count) / static_cast<double>(most);
      table += count == 0
                   ? "<td></td>"
                   : "<td class=\"cell\" style=\"background:rgba(" + std::string(color) + ',' +
                         number_text(0.15 + share) + ")\">" + std::to_string(count) + "</td>";
    }
    table += "</tr>\n";
  }
  return table + "</table></div></div>\n";
}

void add_classes(const ClassesDiagnosis& classes, std::string& page) {
  page +=
      "<h2>Classes</h2>\n<div class=\"wide\"><table><tr><th>class</th><th>recall in float</th>"
      "<th>simulated</th><th>integers</th></tr>\n";
  for (int64_t c = 0; c < classes.floats.classes(); ++c) {
    page += "<tr><td>" + std::to_string(c) + "</td>";
    for (const ConfusionMatrix* matrix : {&classes.floats, &classes.simulated, &classes.integers})
      page += "<td>" + percent_text(matrix->recall(c)) + "</td>";
    page += "</tr>\n";
  }
  page += "</table></div>\n";
  if (classes.floats.classes() > kMostClasses) return;
  page +=
      "<p class=\"small\">Confusion matrices: a row for each label, a column for each "
      "prediction.</p>\n<div class=\"grid2\">\n" +
      confusion(classes.floats, "before: float") + confusion(classes.integers, "after: integers") +
      "</div>\n";
}

void add_outputs(const Diagnosis& d, std::string& page) {
  page +=
      "<h2>Outputs</h2>\n<p class=\"small\">Errors of the integers against float, in the unit of "
      "the output.</p>\n<div class=\"wide\"><table><tr><th>output</th><th>spread</th>"
      "<th>rmse</th><th>largest</th><th>rmse / spread</th></tr>\n";
  for (const OutputDiagnosis& output : d.outputs) {
    page += "<tr><td>" + escaped(output.name) + "</td><td>" + number_text(output.spread) +
            "</td><td>" + number_text(output.rmse) + "</td><td>" + number_text(output.max_error) +
            "</td><td>" + percent_text(output.relative) + "</td></tr>\n";
  }
  page += "</table></div>\n";
}

std::string outputs_text(const SampleDiagnosis& sample) {
  constexpr size_t kMost = 4;
  std::string text;
  for (size_t i = 0; i < std::min(kMost, sample.floats.size()); ++i) {
    text += (i == 0 ? "" : "; ") + number_text(sample.floats[i]) + " &rarr; " +
            number_text(sample.integers[i]);
  }
  return text + (sample.floats.size() > kMost ? "; …" : "");
}

void add_worst(const Diagnosis& d, std::string& page) {
  if (d.worst.empty()) return;
  page += "<h2>Samples that change most</h2>\n<div class=\"grid2\">\n";
  for (const SampleDiagnosis& sample : d.worst) {
    page += "<div class=\"card\">" + sample_figure(sample) + "<p class=\"small\">sample " +
            std::to_string(sample.index);
    if (sample.label && sample.floats.size() > 1) {
      const auto best = [](const std::vector<float>& scores) {
        return std::to_string(std::max_element(scores.begin(), scores.end()) - scores.begin());
      };
      page += ", class " + std::to_string(*sample.label) + ": " + best(sample.floats) +
              " in float, " + best(sample.integers) + " in integers";
    }
    page += ". Outputs: " + outputs_text(sample) + "</p></div>\n";
  }
  page += "</div>\n";
}

}  // namespace

std::string Diagnosis::to_html(const std::string& title) const {
  std::string page = html::begin_page(title, kPageStyle);
  add_summary(*this, page);
  add_layers(*this, page);
  if (classes) add_classes(*classes, page);
  add_outputs(*this, page);
  add_histograms(*this, page);
  add_worst(*this, page);
  return page + html::end_page();
}

}  // namespace quantrain::quant
