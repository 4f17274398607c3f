#include "layers/training/epoch_report.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "framework/io/html.hpp"
#include "framework/io/json_writer.hpp"

namespace quantrain {
namespace {

using html::escaped;
using html::label;
using html::line;
using html::number;

constexpr double kPageWidth = 640.0;
constexpr double kHeight = 220.0;
constexpr double kLeft = 90.0;
constexpr double kBottom = 30.0;
constexpr double kMargin = 12.0;

/// A figure with one curve: a value for each epoch of the list.
std::string chart(const std::string& title,
                  const std::vector<EpochReport>& epochs,
                  const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  // long double, so that the range of two finite numbers is finite.
  long double bottom = *low;
  long double top = *high;
  if (top == bottom) {
    const long double margin = std::max(0.5L, std::abs(top) * 1e-6L);
    bottom -= margin;
    top += margin;
  }
  const auto first = static_cast<double>(epochs.front().epoch);
  const double steps = std::max(1.0, static_cast<double>(epochs.back().epoch) - first);
  const auto x = [&](size_t i) {
    const double part = (static_cast<double>(epochs[i].epoch) - first) / steps;
    return kLeft + (kPageWidth - kLeft - kMargin) * part;
  };
  const auto name = [&](size_t i) { return std::to_string(epochs[i].epoch + 1); };
  const auto y = [&](long double value) {
    const auto part = static_cast<double>((top - value) / (top - bottom));
    return kMargin + (kHeight - kBottom - kMargin) * part;
  };
  std::string svg = "<figure><figcaption>" + escaped(title) + "</figcaption>\n<svg viewBox=\"0 0 " +
                    number(kPageWidth) + ' ' + number(kHeight) + "\" role=\"img\">\n";
  for (int i = 0; i <= 4; ++i) {
    const long double value = bottom + (top - bottom) * i / 4.0L;
    svg += line(kLeft, y(value), kPageWidth - kMargin, y(value), "grid");
    svg += label(kLeft - 8.0, y(value) + 4.0, "end", number(static_cast<double>(value)));
  }
  const size_t every = (values.size() + 9) / 10;
  for (size_t i = 0; i < values.size(); i += every)
    svg += label(x(i), kHeight - 8.0, "middle", name(i));
  std::string points;
  for (size_t i = 0; i < values.size(); ++i)
    points += number(x(i)) + ',' + number(y(values[i])) + ' ';
  svg += "<polyline points=\"" + points + "\"/>\n";
  for (size_t i = 0; i < values.size(); ++i) {
    svg += "<circle cx=\"" + number(x(i)) + "\" cy=\"" + number(y(values[i])) +
           "\" r=\"3\"><title>epoch " + name(i) + ": " + number(values[i]) + "</title></circle>\n";
  }
  return svg + "</svg></figure>\n";
}

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

  std::string page = html::begin_page(title);
  std::string head = "<tr><th>epoch</th><th>steps</th>";
  for (const auto& [name, value] : columns) {
    std::vector<double> values;
    for (const EpochReport& report : epochs) values.push_back(value(report));
    if (!values.empty()) page += chart(name, epochs, values);
    head += "<th>" + escaped(name) + "</th>";
  }
  page += "<table>\n" + head + "<th>seconds</th></tr>\n";
  for (const EpochReport& report : epochs) {
    page += "<tr><td>" + std::to_string(report.epoch + 1) + "</td><td>" +
            std::to_string(report.steps) + "</td>";
    for (const auto& [name, value] : columns) page += "<td>" + number(value(report)) + "</td>";
    page += "<td>" + number(report.seconds) + "</td></tr>\n";
  }
  return page + "</table>\n" + html::end_page();
}

}  // namespace quantrain
