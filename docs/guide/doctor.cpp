// Finds out what quantization costs the network of docs/guide.md, and where.
#include <fstream>
#include <iostream>
#include <memory>

#include "framework/core/error.hpp"
#include "layers/state.hpp"
#include "quant/analysis/treat.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "shapes.hpp"

/// 8 bits, but one layer has weights of 2 bits, which are too few for it.
quant::QConfig too_few_bits() {
  quant::QConfig config = quant::QConfig::int8();
  config.layers["5"] = config.model;
  config.layers["5"].weight.bits = 2;
  return config;
}

int main() try {
  const Dataset training_set = shapes(3000, 1), test_set = shapes(500, 2);
  Sequential net = make_network();
  load(net, "float.safetensors");
  quant::prepare_ptq(net, test_set.batch(0, 1).input, too_few_bits());
  quant::calibrate(net, DataLoader{training_set.first(320)});

  const DataLoader data{test_set};
  const quant::Diagnosis diagnosis = quant::diagnose(net, data);
  std::cout << diagnosis;
  std::ofstream("doctor.html") << diagnosis.to_html("Four shapes");
  std::ofstream("doctor.json") << diagnosis.to_json();

  const quant::Recipe recipe{.make = [] { return std::make_unique<Sequential>(make_network()); },
                             .config = too_few_bits()};
  for (const quant::Treatment& treatment : quant::treat(net, data, diagnosis, recipe))
    std::cout << '\n' << treatment;
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
