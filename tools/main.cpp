#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "framework/core/system/process.hpp"
#include "tools/command.hpp"
#include "tools/flags.hpp"
#include "tools/output.hpp"
#include "tools/words.hpp"

namespace quantrain::tools {
namespace {

/// One line on standard error.
int complain(const std::string& where, std::string_view said, int status) {
  std::string text = in_own_words(said);
  // A text in lines becomes one: what indents a line goes. Other spaces may be those of a file's
  // name.
  for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) {
    const size_t end = std::min(text.find_first_not_of(" \n", at), text.size());
    text.replace(at, end - at, 1, ' ');
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  std::fprintf(stderr, "%s: %s\n", where.c_str(), text.c_str());
  return status;
}

std::vector<std::string> names_of_verbs() {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) names.emplace_back(verb.name);
  return names;
}
std::string list_of_verbs() { return joined(names_of_verbs()); }

/// ": did you mean info?"
std::string meant(std::string_view name, const std::vector<std::string>& names) {
  const std::string best = nearest(name, names);
  return best.empty() ? "" : ": did you mean " + best + '?';
}

/// What to say about the first argument that looks like a flag and is none of the verb's; else "".
std::string unknown_flag(const CLI::App& line, int argc, const char* const* argv) {
  std::vector<std::string> names{"--help"};
  for (const CLI::Option* const option : line.get_options()) {
    if (!option->get_lnames().empty()) names.push_back("--" + option->get_lnames()[0]);
  }
  for (int i = 2; i < argc; ++i) {
    std::string name = argv[i];
    name = name.substr(0, name.find('='));
    if (name.size() > 2 && name.starts_with("--") &&
        std::find(names.begin(), names.end(), name) == names.end())
      return "there is no " + name + meant(name, names);
  }
  return "";
}

int run_program(int argc, const char* const* argv) {
  handle_signals();
  CLI::App program;
  std::vector<Run> runs;
  declare(program, runs);
  std::string where = "quantrain";
  try {
    const std::string first = argc > 1 ? argv[1] : "";
    const auto verb = std::find_if(
        verbs().begin(), verbs().end(), [&](const Verb& one) { return one.name == first; });
    if (first.empty())
      return complain(where, "no verb: there are " + list_of_verbs() + "; see quantrain --help", 2);
    if (verb == verbs().end() && first[0] != '-')
      return complain(where,
                      "no verb \"" + first + "\": there are " + list_of_verbs() +
                          meant(first, names_of_verbs()),
                      2);
    if (verb != verbs().end()) where += " " + first;
    program.parse(argc, argv);
    if (verb == verbs().end()) return complain(where, "no verb; see quantrain --help", 2);
    runs[static_cast<size_t>(verb - verbs().begin())]();
    return 0;
  } catch (const CLI::CallForHelp&) {
    const auto chosen = program.get_subcommands();
    print(chosen.empty() ? program.help() : chosen[0]->help("quantrain"));
    return 0;
  } catch (const CLI::CallForVersion& version) {
    print(std::string(version.what()) + "\n");
    return 0;
  } catch (const ShownInstead& shown) {
    // It comes before the parser looks for what it does not know.
    const CLI::App& line = *program.get_subcommands().at(0);
    std::string text = unknown_flag(line, argc, argv);
    if (text.empty() && line.remaining_size() > 0) text = CLI::ExtrasError(line.remaining()).what();
    if (!text.empty()) return complain(where, text + "; see " + where + " --help", 2);
    print(shown.text);
    return 0;
  } catch (const CLI::ParseError& error) {
    const auto chosen = program.get_subcommands();
    std::string text = chosen.empty() ? "" : unknown_flag(*chosen[0], argc, argv);
    if (text.empty()) text = error.what();
    return complain(where, text + "; see " + where + " --help", 2);
  } catch (const WrongCall& error) {
    return complain(where, error.what(), 2);
  } catch (const std::exception& error) {
    return complain(where, error.what(), 1);
  }
}

}  // namespace
}  // namespace quantrain::tools

int main(int argc, char** argv) {
  try {
    const auto [count, values] = quantrain::system::start_program(argc, argv);
    return quantrain::tools::run_program(count, values);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quantrain: %s\n", error.what());
    return 1;
  }
}
