#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "layers/init.hpp"
#include "layers/module.hpp"

namespace quantrain {

/// Makes a new network an independent copy of another one: the same values of parameters and
/// buffers, in tensors of its own; the same modes (training or evaluation), and the same parameters
/// require gradients. If the other network is prepared for quantization, the new one is prepared in
/// the same way, and gets its ranges, scales and phases.
/// to: a network of the same layers, not prepared, as made by the code that made `from`.
/// Throws: GraphError if both share a parameter or buffer, if `to` is prepared, or if the layers
/// differ; ShapeError if shapes differ; what preparing throws.
void copy_into(const Module& from, Module& to);

/// An independent copy of a network, to train, quantize or change without an effect on the
/// original. A module of your own may hold its layers in any way, so a function makes the layers
/// anew:
///   Sequential other = copy(net, make_network);
///   Residual block = copy(net, [] { return Residual(16); });
/// Parameters that layers share are shared within the copy, too, if `make` shares them. Later
/// random numbers do not depend on the call: it leaves default_generator() as it was.
/// Throws: as copy_into(), and what `make` throws.
template <class Make>
requires std::derived_from<std::decay_t<std::invoke_result_t<Make&>>, Module>
auto copy(const Module& net, Make&& make) {
  struct Restored {
    Generator before = default_generator();
    ~Restored() { default_generator() = before; }
  };
  auto result = [&] {
    const Restored generator;
    return make();
  }();
  copy_into(net, result);
  return result;
}

}  // namespace quantrain
