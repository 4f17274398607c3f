#include "examples/data/pump.hpp"

#include <array>
#include <cmath>
#include <cstdio>

#include "framework/core/random.hpp"

namespace quantrain::examples {
namespace {

constexpr std::array kStates{"healthy", "bearing", "cavitation", "leak"};

}  // namespace

std::string pump_csv(int64_t rows, uint64_t seed) {
  std::string text = "temperature_c,pressure_pa,vibration_g,current_a,flow_m3_s,speed_rpm,state\n";
  for (int64_t row = 0; row < rows; ++row) {
    Random random(seed, static_cast<uint64_t>(row));
    const int64_t state = random.below(static_cast<int64_t>(kStates.size()));
    const float severity = random.uniform(0.25f, 1.0f);
    const float load = random.uniform(0.5f, 1.0f);
    const float bearing = state == 1 ? severity : 0.0f;
    const float cavitation = state == 2 ? severity : 0.0f;
    const float leak = state == 3 ? severity : 0.0f;

    const float temperature = random.uniform(10.0f, 35.0f) + 35.0f * load + 12.0f * bearing;
    const float pressure =
        5.3e5f - 1.1e5f * load - 0.6e5f * cavitation - 0.7e5f * leak + 6e3f * random.normal();
    const float vibration = 0.03f + 0.02f * load + 0.12f * bearing + 0.08f * cavitation +
                            0.01f * std::abs(random.normal());
    const float current = 3.0f + 6.0f * load + 0.3f * bearing - 0.8f * cavitation + 0.8f * leak +
                          0.15f * random.normal();
    const float flow = (0.004f + 0.010f * load) * (1.0f - 0.25f * cavitation) + 0.002f * leak +
                       2e-4f * random.normal();
    const float speed = 1480.0f - 30.0f * load - 4.0f * bearing + 2.0f * random.normal();

    char line[160];
    std::snprintf(line,
                  sizeof line,
                  "%.1f,%.0f,%.4f,%.2f,%.5f,%.0f,%s\n",
                  double{temperature},
                  double{pressure},
                  double{vibration},
                  double{current},
                  double{flow},
                  double{speed},
                  kStates[static_cast<size_t>(state)]);
    text += line;
  }
  return text;
}

}  // namespace quantrain::examples
