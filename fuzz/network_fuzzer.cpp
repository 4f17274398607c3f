// Reads a network with layers and wiring, and prints it. A network whose values stay small then
// runs its example.
#include "layers/network/network_file.hpp"

#include <algorithm>
#include <sstream>

#include "fuzz/harness.hpp"
#include "quant/prepare/scopes.hpp"

namespace quantrain::fuzz {
namespace {

constexpr int64_t kMostNumber = 64;
constexpr int64_t kMostElements = 1 << 12;

bool is_small(const Attribute& value) {
  const auto small = [](int64_t number) { return std::abs(number) <= kMostNumber; };
  if (const auto* const list = std::get_if<std::vector<int64_t>>(&value))
    return std::all_of(list->begin(), list->end(), small);
  const auto* const number = std::get_if<int64_t>(&value);
  return number == nullptr || (*number > std::numeric_limits<int64_t>::min() && small(*number));
}

/// Whether a pass cannot take much memory or time.
bool runs_fast(const Network& net) {
  for (const NetworkInput& input : net.inputs()) {
    int64_t elements = input.shape.empty() ? kMostElements + 1 : 1;
    for (const int64_t extent : input.shape) {
      if (extent > kMostElements) return false;
      elements *= extent;
      if (elements > kMostElements) return false;
    }
  }
  int larger = 0;  // steps whose result may be larger than what they read
  for (const NetworkStep& step : net.steps()) {
    const std::string_view type = step.layer->type();
    if (type == "Upsample" || type.find("Pad") != type.npos || type == "pad") ++larger;
    if (step.inputs.size() > 4) ++larger;
    for (const auto& [name, value] : members_of(*step.layer).options) {
      if (name != "seed" && !is_small(value)) return false;
    }
  }
  return larger <= 1 && net.steps().size() <= 32;
}

}  // namespace

bool accepts(std::span<const uint8_t> input) {
  Network net = parse_network(input, "input");
  std::ostringstream text;
  text << net;
  if (!runs_fast(net)) return true;
  const NoGrad no_grad;
  const std::vector<Tensor> batch = net.example();
  net.eval();
  net(batch);
  return true;
}

}  // namespace quantrain::fuzz
