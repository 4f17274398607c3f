#pragma once

#include <string>
#include <string_view>

// Parts of self-contained pages: no scripts, nothing from elsewhere.
namespace quantrain::html {

/// A number with this many digits, equal in every locale: "0.03125".
std::string number(double value, int digits = 4);
/// Text with &, <, > and " replaced.
std::string escaped(std::string_view text);
/// The page up to its title as a heading, with the style that all pages share and `style` after it.
std::string begin_page(std::string_view title, std::string_view style = "");
std::string end_page();

/// SVG elements. css: the class.
std::string line(double x1, double y1, double x2, double y2, const char* css);
std::string label(double x, double y, const char* anchor, std::string_view text);
std::string rectangle(double x, double y, double width, double height, const char* css);

}  // namespace quantrain::html
