// quantrain completion: scripts that complete verbs, flags and their values.
#include <CLI/CLI.hpp>
#include <memory>

#include "tools/command.hpp"
#include "tools/flags.hpp"
#include "tools/output.hpp"

namespace quantrain::tools {
namespace {

using Flags = std::vector<const CLI::Option*>;

/// The flags of a verb, without its positional arguments.
Flags flags_of(const CLI::App& line) {
  Flags flags;
  for (const CLI::Option* const option : line.get_options()) {
    if (!option->get_lnames().empty()) flags.push_back(option);
  }
  return flags;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// The words that complete the value of a flag; empty for files and anything else.
std::string words(const CLI::Option& option) {
  std::string all;
  for (const std::string& choice : choices(option.get_type_name()))
    all += (all.empty() ? "" : " ") + choice;
  return all;
}

bool is_path(const CLI::Option& option) {
  return option.get_type_name() == "FILE" || option.get_type_name() == "FOLDER";
}

/// Words of the verb's only argument that is no path, such as a shell's name.
std::string argument_words(const CLI::App& line) {
  for (const CLI::Option* const option : line.get_options()) {
    if (option->get_positional() && option->get_lnames().empty()) return words(*option);
  }
  return "";
}

std::vector<const CLI::App*> verbs_of(const CLI::App& program) {
  return program.get_subcommands([](const CLI::App*) { return true; });
}

std::string bash(const CLI::App& program) {
  std::string names;
  std::string cases;
  for (const CLI::App* const verb : verbs_of(program)) {
    names += (names.empty() ? "" : " ") + verb->get_name();
    std::string flags;
    std::string values;
    for (const CLI::Option* const option : flags_of(*verb)) {
      const std::string name = "--" + option->get_lnames()[0];
      flags += (flags.empty() ? "" : " ") + name;
      if (takes_value(*option) && !is_path(*option))
        values += "        " + name + ") values='" + words(*option) + "' ;;\n";
    }
    cases += "    " + verb->get_name() + ")\n      flags='" + flags + "'\n      others='" +
             argument_words(*verb) + "'\n      case $previous in\n" + values +
             "        *) values=- ;;\n      esac ;;\n";
  }
  return "# Completions of quantrain for bash; made by: quantrain completion bash\n"
         "_quantrain() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local flags='' values='' others=''\n"
         "  COMPREPLY=()\n"
         "  if [[ $COMP_CWORD -eq 1 ]]; then\n"
         "    COMPREPLY=($(compgen -W '" +
         names +
         " --help --version' -- \"$word\"))\n"
         "    return\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]} in\n" +
         cases +
         "    *) return ;;\n"
         "  esac\n"
         "  if [[ $values != - ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$values\" -- \"$word\"))\n"
         "  elif [[ $word == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
         "  elif [[ $others ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$others\" -- \"$word\"))\n"
         "  else\n"
         "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _quantrain quantrain\n";
}

/// The text between single quotes, without what either shell would read.
std::string escaped_for(const std::string& text, const std::string& special) {
  std::string result;
  for (const char letter : text) {
    if (letter == '\'') {
      result += "'\\''";
    } else {
      if (special.find(letter) != std::string::npos) result += '\\';
      result += letter;
    }
  }
  return result;
}

std::string zsh(const CLI::App& program) {
  std::string names;
  std::string cases;
  for (const CLI::App* const verb : verbs_of(program)) {
    names += "    '" + verb->get_name() + ":" + escaped_for(verb->get_description(), ":") + "'\n";
    cases += "    " + verb->get_name() + ")\n      _arguments";
    for (const CLI::Option* const option : flags_of(*verb)) {
      const bool repeats = option->get_expected_max() > 1;
      cases += " \\\n        '" + std::string(repeats ? "*" : "") + "--" + option->get_lnames()[0] +
               "[" + escaped_for(option->get_description(), "[]") + "]";
      if (takes_value(*option)) {
        const std::string list = words(*option);
        cases += ":" + escaped_for(option->get_type_name(), ":") + ":" +
                 (is_path(*option) ? "_files"
                  : list.empty()   ? " "
                                   : "(" + list + ")");
      }
      cases += "'";
    }
    const std::string list = argument_words(*verb);
    cases += " \\\n        '*:file:" + (list.empty() ? std::string("_files") : "(" + list + ")") +
             "' ;;\n";
  }
  return "#compdef quantrain\n"
         "# Completions of quantrain for zsh; made by: quantrain completion zsh\n"
         "_quantrain() {\n"
         "  local -a verbs\n"
         "  verbs=(\n" +
         names +
         "  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe verb verbs\n"
         "    return\n"
         "  fi\n"
         "  local verb=$words[2]\n"
         "  shift words\n"
         "  (( CURRENT-- ))\n"
         "  case $verb in\n" +
         cases +
         "  esac\n"
         "}\n"
         "_quantrain \"$@\"\n";
}

std::string fish(const CLI::App& program) {
  std::string text =
      "# Completions of quantrain for fish; made by: quantrain completion fish\n"
      "complete -c quantrain -n __fish_use_subcommand -f\n";
  for (const CLI::App* const verb : verbs_of(program)) {
    const std::string name = verb->get_name();
    text += "complete -c quantrain -n __fish_use_subcommand -a " + name + " -d '" +
            escaped_for(verb->get_description(), "") + "'\n";
    const std::string start = "complete -c quantrain -n '__fish_seen_subcommand_from " + name + "'";
    for (const CLI::Option* const option : flags_of(*verb)) {
      text += start + " -l " + option->get_lnames()[0] + " -d '" +
              escaped_for(option->get_description(), "") + "'";
      if (takes_value(*option)) text += " -r";
      if (const std::string list = words(*option); !list.empty()) text += " -f -a '" + list + "'";
      text += '\n';
    }
    if (const std::string list = argument_words(*verb); !list.empty())
      text += start + " -f -a '" + list + "'\n";
  }
  return text;
}

}  // namespace

std::string completion_script(const CLI::App& program, std::string_view shell) {
  return shell == "bash" ? bash(program) : shell == "zsh" ? zsh(program) : fish(program);
}

Run completion(CLI::App& line) {
  const auto shell = std::make_shared<std::string>();
  flag(line, "SHELL", *shell, "bash|zsh|fish", "the shell that will read them")->required();
  example(line,
          "  quantrain completion bash > ~/.local/share/bash-completion/completions/quantrain");
  CLI::App* const program = line.get_parent();
  return [=] { print(completion_script(*program, *shell)); };
}

}  // namespace quantrain::tools
