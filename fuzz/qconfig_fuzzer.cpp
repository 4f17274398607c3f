// Reads the JSON of a configuration, and writes the configuration. Reading what was written must
// give an equal configuration.
#include <string_view>

#include "fuzz/harness.hpp"
#include "quant/prepare/qconfig.hpp"

namespace quantrain::fuzz {

bool accepts(std::span<const uint8_t> input) {
  using quant::QConfig;
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  const QConfig config = QConfig::from_json(text);
  if (!(QConfig::from_json(config.to_json()) == config))
    finding("reading the written configuration gives another one");
  return true;
}

}  // namespace quantrain::fuzz
