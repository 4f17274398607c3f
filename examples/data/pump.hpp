#pragma once

#include <cstdint>
#include <string>

namespace quantrain::examples {

/// A table of a pump that is not there, as a .csv: the sensors' columns differ by up to eight
/// orders of magnitude, and the last one, "state", is healthy, bearing, cavitation or leak. A fault
/// may be slight, and then looks like health.
std::string pump_csv(int64_t rows, uint64_t seed);

}  // namespace quantrain::examples
