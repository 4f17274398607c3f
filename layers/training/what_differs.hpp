#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace quantrain {

/// Of two texts, what a message needs to show: short ones whole; of long ones, the words that
/// differ, each after the option that it belongs to: "--epochs 2 ... --lr 0.1".
std::pair<std::string, std::string> what_differs(std::string_view a, std::string_view b);

}  // namespace quantrain
