#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "framework/data/loader.hpp"
#include "layers/network/network.hpp"
#include "quant/prepare/qconfig.hpp"

namespace quantrain::quant {

/// How to make a network again, to try something on it.
struct Recipe {
  /// Makes the network in float. Its values do not matter: parameters and buffers are copied by
  /// their names.
  ///   .make = [] { return std::make_unique<Sequential>(my_network()); }
  std::function<std::unique_ptr<Module>()> make;
  QConfig config;  ///< with which the network was prepared, or is to be prepared
  /// The data with another range of the input, such as
  ///   .encode = [&](Range range) { return DataLoader{Dataset::from_floats(.., range, ..)}; }
  /// Only treat() uses it, where the advice is another range and the data are codes. Values outside
  /// of the range shall saturate.
  std::function<DataLoader(Range)> encode = nullptr;
  /// Trains the changed float network. Empty: no training. Only treat() uses it.
  std::function<void(Module&)> train = nullptr;
};

/// A Recipe for a Network, prepared or not, which can be copied without code. It must outlive the
/// recipe.
Recipe recipe_of(const Network& net, QConfig config);

/// A new float network with the values of `net`, which may be prepared. It has the mode that `make`
/// gives it.
/// Throws: GraphError naming `where` if recipe.make is null, returns null or makes another network.
std::unique_ptr<Module> float_copy(const Module& net, const Recipe& recipe, std::string_view where);

}  // namespace quantrain::quant
