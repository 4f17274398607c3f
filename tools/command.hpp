#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/error.hpp"

namespace CLI {
class App;
}

// The verbs of the program. Each verb states its flags once, on a CLI::App; the parser, --help, the
// completions and the man page read them from there.
namespace quantrain::tools {

/// Flags that do not fit together: the call is wrong, and the program ends with status 2.
class WrongCall : public Error {
  using Error::Error;
};

/// Thrown while flags are read: the text is shown, and the verb does not run.
struct ShownInstead {
  std::string text;
};

/// The name that was probably meant: the nearest one, if a third of it or less differs; else "".
std::string nearest(std::string_view name, const std::vector<std::string>& names);

/// Runs a verb whose flags are read.
using Run = std::function<void()>;

struct Verb {
  std::string_view name;
  std::string_view summary;  ///< one line, without a full stop
  /// Adds the verb's flags and its example (as footer) to the command line.
  Run (*declare)(CLI::App& line);
};

/// All verbs, in the order of --help.
std::span<const Verb> verbs();

// One file each.
Run info(CLI::App& line);
Run plan(CLI::App& line);
Run quantize(CLI::App& line);
Run finetune(CLI::App& line);
Run diagnose(CLI::App& line);
Run run(CLI::App& line);
Run compare(CLI::App& line);
Run export_model(CLI::App& line);
Run bench(CLI::App& line);
Run completion(CLI::App& line);
Run man(CLI::App& line);

/// Declares the program and its verbs. runs[i] belongs to verbs()[i].
void declare(CLI::App& program, std::vector<Run>& runs);

// A flag's placeholder says what its value is: FILE and FOLDER are completed as paths, and values
// that are separated by bars, "train|test", are the only ones.

/// The values of a placeholder such as "train|test"; empty if any value is allowed.
std::vector<std::string> choices(std::string_view placeholder);

/// A script for this shell (bash, zsh or fish) that completes verbs, flags and their values.
std::string completion_script(const CLI::App& program, std::string_view shell);
/// The manual page in the format of man(7).
std::string man_page(const CLI::App& program);

}  // namespace quantrain::tools
