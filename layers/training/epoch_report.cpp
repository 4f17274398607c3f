#include "layers/training/epoch_report.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "framework/io/json_writer.hpp"

namespace quantrain {
namespace {

constexpr double kPageWidth = 640.0;
constexpr double kHeight = 220.0;
constexpr double kLeft = 90.0;
constexpr double kBottom = 30.0;
constexpr double kMargin = 12.0;

/// Formats a number in the same way in every locale.
std::string number(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 4);
  return {text, end.ptr};
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

std::string line(double x1, double y1, double x2, double y2, const char* css) {
  return "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) +
         "\" y2=\"" + number(y2) + "\" class=\"" + css + "\"/>\n";
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\">" +
         escaped(text) + "</text>\n";
}

/// A figure with one curve: a value for each epoch.
std::string chart(const std::string& title, const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  double bottom = *low;
  double top = *high;
  if (top == bottom) {
    bottom -= 0.5;
    top += 0.5;
  }
  const double steps = std::max(1.0, static_cast<double>(values.size()) - 1.0);
  const auto x = [&](double i) { return kLeft + (kPageWidth - kLeft - kMargin) * i / steps; };
  const auto y = [&](double value) {
    return kMargin + (kHeight - kBottom - kMargin) * (top - value) / (top - bottom);
  };
  std::string svg = "<figure><figcaption>" + escaped(title) + "</figcaption>\n<svg viewBox=\"0 0 " +
                    number(kPageWidth) + ' ' + number(kHeight) + "\" role=\"img\">\n";
  for (int i = 0; i <= 4; ++i) {
    const double value = bottom + (top - bottom) * i / 4.0;
    svg += line(kLeft, y(value), kPageWidth - kMargin, y(value), "grid");
    svg += label(kLeft - 8.0, y(value) + 4.0, "end", number(value));
  }
  const size_t every = (values.size() + 9) / 10;
  for (size_t i = 0; i < values.size(); i += every)
    svg += label(x(static_cast<double>(i)), kHeight - 8.0, "middle", std::to_string(i + 1));
  std::string points;
  for (size_t i = 0; i < values.size(); ++i)
    points += number(x(static_cast<double>(i))) + ',' + number(y(values[i])) + ' ';
  svg += "<polyline points=\"" + points + "\"/>\n";
  for (size_t i = 0; i < values.size(); ++i) {
    svg += "<circle cx=\"" + number(x(static_cast<double>(i))) + "\" cy=\"" + number(y(values[i])) +
           "\" r=\"3\"><title>epoch " + std::to_string(i + 1) + ": " + number(values[i]) +
           "</title></circle>\n";
  }
  return svg + "</svg></figure>\n";
}

constexpr const char* kStyle = R"(
body { font: 15px/1.4 system-ui, sans-serif; max-width: 720px; margin: 2em auto; padding: 0 1em; }
figure { margin: 1.5em 0; } figcaption { font-weight: 600; }
svg { width: 100%; } svg text { font-size: 12px; fill: currentColor; }
.grid { stroke: #8884; } polyline { fill: none; stroke: #1769aa; stroke-width: 2; }
circle { fill: #1769aa; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: right; padding: 2px 8px; }
tr + tr { border-top: 1px solid #8884; }
)";

}  // namespace

bool is_report_field(std::string_view name) {
  constexpr std::string_view kFields[] = {"epoch", "steps", "loss", "learning_rate", "seconds"};
  return std::find(std::begin(kFields), std::end(kFields), name) != std::end(kFields);
}

void write_members(JsonWriter& json, const EpochReport& report) {
  json.member("epoch", report.epoch);
  json.member("steps", report.steps);
  json.member("loss", report.loss);
  json.member("learning_rate", report.learning_rate);
  json.member("seconds", report.seconds);
}

std::string to_json(const EpochReport& report) {
  JsonWriter json;
  json.object([&] {
    write_members(json, report);
    for (const auto& [name, value] : report.metrics) json.member(name, value);
  });
  return std::move(json).text();
}

std::string training_page(const std::string& title, const std::vector<EpochReport>& epochs) {
  std::vector<std::pair<std::string, std::function<double(const EpochReport&)>>> columns = {
      {"loss", [](const EpochReport& e) { return e.loss; }}};
  // Only metrics that every epoch has.
  for (const auto& [name, value] : epochs.empty() ? Metrics{} : epochs[0].metrics) {
    const auto has = [&name = name](const EpochReport& e) { return e.metrics.contains(name); };
    if (!std::all_of(epochs.begin(), epochs.end(), has)) continue;
    columns.emplace_back(name, [name = name](const EpochReport& e) { return e.metrics.at(name); });
  }
  columns.emplace_back("learning rate",
                       [](const EpochReport& e) { return static_cast<double>(e.learning_rate); });

  std::string html = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" +
                     escaped(title) + "</title><style>" + kStyle + "</style></head><body>\n<h1>" +
                     escaped(title) + "</h1>\n";
  std::string head = "<tr><th>epoch</th><th>steps</th>";
  for (const auto& [name, value] : columns) {
    std::vector<double> values;
    for (const EpochReport& report : epochs) values.push_back(value(report));
    if (!values.empty()) html += chart(name, values);
    head += "<th>" + escaped(name) + "</th>";
  }
  html += "<table>\n" + head + "<th>seconds</th></tr>\n";
  for (const EpochReport& report : epochs) {
    html += "<tr><td>" + std::to_string(report.epoch + 1) + "</td><td>" +
            std::to_string(report.steps) + "</td>";
    for (const auto& [name, value] : columns) html += "<td>" + number(value(report)) + "</td>";
    html += "<td>" + number(report.seconds) + "</td></tr>\n";
  }
  return html + "</table>\n</body></html>\n";
}

}  // namespace quantrain
