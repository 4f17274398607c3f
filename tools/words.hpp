#pragma once

#include <string>
#include <string_view>

namespace quantrain::tools {

/// The libraries advise in C++: "set QConfig::input_range". The same text in the program's words:
/// "say --range LOW,HIGH". It also fits within JSON and HTML. Text without such advice stays as it
/// is. To teach it another phrase, add a line to the list in words.cpp.
std::string in_own_words(std::string_view text);

}  // namespace quantrain::tools
