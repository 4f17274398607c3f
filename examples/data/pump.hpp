#pragma once

#include <cstdint>
#include <string>

namespace quantrain::examples {

/// Sensor values of a simulated pump, as the text of a .csv. The columns differ by up to eight
/// orders of magnitude. The last column, "state", is healthy, bearing, cavitation or leak. A pump
/// with a slight fault may look healthy.
std::string pump_csv(int64_t rows, uint64_t seed);

}  // namespace quantrain::examples
