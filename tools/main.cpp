#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tools/command.hpp"
#include "tools/output.hpp"

namespace quantrain::tools {
namespace {

/// One line on standard error.
int complain(const std::string& where, std::string text, int status) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  std::fprintf(stderr, "%s: %s\n", where.c_str(), text.c_str());
  return status;
}

std::string list_of_verbs() {
  std::string all;
  for (const Verb& verb : verbs()) all += (all.empty() ? "" : ", ") + std::string(verb.name);
  return all;
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
      return complain(where, "no verb \"" + first + "\": there are " + list_of_verbs(), 2);
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
  } catch (const CLI::ParseError& error) {
    return complain(where, error.what() + std::string("; see ") + where + " --help", 2);
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
    return quantrain::tools::run_program(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quantrain: %s\n", error.what());
    return 1;
  }
}
