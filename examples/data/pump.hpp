#pragma once

#include <cstdint>
#include <string>

namespace quantrain::examples {

/// A table of a simulated pump, as a .csv. The sensors' columns differ by up to eight orders of
/// magnitude. The last column, "state", is healthy, bearing, cavitation or leak. A slight fault may
/// look like a healthy pump.
std::string pump_csv(int64_t rows, uint64_t seed);

}  // namespace quantrain::examples
