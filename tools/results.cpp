#include "tools/results.hpp"

#include "layers/network/network_file.hpp"
#include "tools/flags.hpp"

namespace quantrain::tools {

void ResultFlags::declare(CLI::App& line, const std::string& network_help) {
  flag(line, "--output", output, "FILE", "the integer model");
  flag(line, "--network", network, "FILE", network_help);
}

void ResultFlags::write(const IntegerModel& integers, const Network& net, Report& report) const {
  add_size(device_size(integers), report);
  write_files([&] {
    if (!output.empty()) integers.save(output);
    if (!network.empty()) save_network(net, network);
  });
  if (!output.empty()) report.fact("integer_model", output);
  if (!network.empty()) report.fact("prepared_network", network);
}

}  // namespace quantrain::tools
