// quantrain man: the manual page.
#include <CLI/CLI.hpp>
#include <cctype>

#include "framework/core/version.hpp"
#include "tools/command.hpp"
#include "tools/flags.hpp"
#include "tools/output.hpp"

namespace quantrain::tools {
namespace {

/// Text that the formatter takes for text.
std::string escaped(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool starts_line = i == 0 || text[i - 1] == '\n';
    if (starts_line && (text[i] == '.' || text[i] == '\'')) result += "\\&";
    if (text[i] == '\\') {
      result += "\\e";
    } else if (text[i] == '-') {
      result += "\\-";
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string upper(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::toupper(letter));
  return text;
}

std::string option_entry(const CLI::Option& option) {
  const bool positional = option.get_lnames().empty();
  std::string text =
      ".TP\n.B " + escaped(positional ? option.get_name() : "--" + option.get_lnames()[0]);
  text += '\n';
  const bool takes_value = option.get_items_expected_max() > 0;
  if (takes_value && !positional) {
    text.pop_back();
    text += " \\fI" + escaped(option.get_type_name()) + "\\fR\n";
  }
  return text + escaped(option.get_description()) + '\n';
}

}  // namespace

std::string man_page(const CLI::App& program) {
  std::string text = ".TH QUANTRAIN 1 \"\" \"quantrain " + std::string(version()) +
                     "\" \"User Commands\"\n.SH NAME\nquantrain \\- integer networks for devices\n"
                     ".SH SYNOPSIS\n.B quantrain\n.I VERB\n[\\fIarguments\\fR]\n.SH DESCRIPTION\n" +
                     escaped(program.get_description()) + "\n.PP\n" +
                     escaped(program.get_footer()) + '\n';
  for (const CLI::App* const verb : program.get_subcommands([](const CLI::App*) { return true; })) {
    text +=
        ".SH " + escaped(upper("quantrain " + verb->get_name())) + '\n' +
        escaped(upper(verb->get_description().substr(0, 1)) + verb->get_description().substr(1)) +
        ".\n";
    for (const CLI::Option* const option : verb->get_options()) text += option_entry(*option);
    if (const std::string footer = verb->get_footer(); !footer.empty())
      text += ".PP\n.nf\n" + escaped(footer) + "\n.fi\n";
  }
  return text;
}

Run man(CLI::App& line) {
  example(line, "  quantrain man | man -l -");
  CLI::App* const program = line.get_parent();
  return [=] { print(man_page(*program)); };
}

}  // namespace quantrain::tools
