#pragma once

#include <string>

namespace quantrain::quant {

/// Three digits, equal in every locale: "0.0313", "1e-06".
std::string number_text(double value);
/// "1.56 %", or "<0.01 %" for smaller shares.
std::string percent_text(double share);

}  // namespace quantrain::quant
