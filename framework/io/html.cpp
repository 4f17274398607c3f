#include "framework/io/html.hpp"

#include <charconv>

namespace quantrain::html {
namespace {

constexpr const char* kStyle = R"(
body { font: 15px/1.4 system-ui, sans-serif; max-width: 720px; margin: 2em auto; padding: 0 1em; }
figure { margin: 1.5em 0; } figcaption { font-weight: 600; }
svg { width: 100%; } svg text { font-size: 12px; fill: currentColor; }
.grid { stroke: #8884; } polyline { fill: none; stroke: #1769aa; stroke-width: 2; }
circle { fill: #1769aa; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: right; padding: 2px 8px; }
tr + tr { border-top: 1px solid #8884; }
)";

std::string attribute(const char* name, double value) {
  return std::string(" ") + name + "=\"" + number(value) + '"';
}

}  // namespace

std::string number(double value, int digits) {
  char text[32];
  const auto end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::general, digits);
  return {text, end.ptr};
}

std::string escaped(std::string_view text) {
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

std::string begin_page(std::string_view title, std::string_view style) {
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
         "<meta name=\"viewport\" content=\"width=device-width\"><title>" +
         escaped(title) + "</title><style>" + kStyle + std::string(style) +
         "</style></head><body>\n<h1>" + escaped(title) + "</h1>\n";
}

std::string end_page() { return "</body></html>\n"; }

std::string line(double x1, double y1, double x2, double y2, const char* css) {
  return "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
         attribute("y2", y2) + " class=\"" + css + "\"/>\n";
}

std::string label(double x, double y, const char* anchor, std::string_view text) {
  return "<text" + attribute("x", x) + attribute("y", y) + " text-anchor=\"" + anchor + "\">" +
         escaped(text) + "</text>\n";
}

std::string rectangle(double x, double y, double width, double height, const char* css) {
  return "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) +
         attribute("height", height) + " class=\"" + css + "\"/>\n";
}

}  // namespace quantrain::html
