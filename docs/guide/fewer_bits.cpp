// Quantizes the network of docs/guide.md to few bits without training it: methods after training,
// and a search for the bits of each layer.
#include <iostream>
#include <memory>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/metrics/evaluate.hpp"
#include "layers/evaluate.hpp"
#include "layers/state.hpp"
#include "quant/analysis/search_bits.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/methods/adaround.hpp"
#include "quant/methods/bias_correction.hpp"
#include "quant/methods/equalization.hpp"
#include "quant/methods/weight_ranges.hpp"
#include "quant/prepare/prepare.hpp"
#include "shapes.hpp"

/// Weights and activations of 3 bits.
void round_better(const DataLoader& some, const DataLoader& test) {
  Sequential net = make_network();
  load(net, "float.safetensors");
  quant::prepare_ptq(net, (*some.begin()).input, quant::QConfig::bits(3, 3));
  quant::calibrate(net, some);
  std::cout << "accuracy with 3 bits: " << evaluate(net, test).at("accuracy") << '\n';
  std::cout << quant::improve(net, some, {quant::WeightRanges{}, quant::AdaRound{}});
  std::cout << "accuracy after AdaRound: " << evaluate(net, test).at("accuracy") << '\n';
}

/// The bits of each layer for a given number of bytes.
void search(const DataLoader& some, const DataLoader& test) {
  Sequential net = make_network();
  load(net, "float.safetensors");
  const quant::Recipe recipe{.make = [] { return std::make_unique<Sequential>(make_network()); },
                             .config = quant::QConfig::int8()};
  std::cout << quant::sensitivity(net, some, test, recipe, {.metric = "cross_entropy"});

  const quant::SearchResult found =
      quant::search_bits(net, some, test, recipe, {.goal = {.bytes = 2500}});
  std::cout << found;
  write_file("bits.json", found.config.to_json());
}

int main() try {
  const DataLoader some{shapes(3000, 1).first(320)}, test{shapes(500, 2), {.batch = 100}};
  round_better(some, test);
  search(some, test);
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
