#pragma once

#include <cstdint>
#include <functional>

#include "layers/module.hpp"

namespace quantrain::quant {

/// Lowers the bits of a prepared network's weights and activations whose configuration has
/// first_bits: to first_bits - by, but not below the configured bits, and never up. Parameters that
/// were given keep their bits. The bits are saved with the state, and a network converts with the
/// bits that it has: plan() shows them as "8 -> 4" if they can still fall from 8 to 4.
/// EarlyStopping::restore_best restores the bits of the best epoch, too; switch it off while bits
/// fall.   docs/quantization.md (30)
/// Throws: GraphError if the network is not prepared; QuantError if nothing in it has first_bits
/// that can fall, or naming a frozen slot whose bits would; DataError naming activations whose
/// learned range is not finite. On an error, nothing changes.
void lower_bits(Module& net, int64_t by);

/// For FitOptions::begin_epoch: lowers the bits by one before every `epochs`-th epoch, so that the
/// last bits are reached after epochs * (first_bits - bits) epochs. Of a network whose bits fell
/// before this call, they fall on from there. If fit() resumes, it counts epochs from the first
/// one: call this on the network as it was when the run began, before a checkpoint is loaded into
/// it.
///   fit(net, optimizer, loader, loss, {.epochs = 12, .begin_epoch = quant::gradual_bits(net, 2)});
/// The network must outlive the result.
/// Throws: as lower_bits(); DataError if epochs is below 1.
std::function<void(int64_t epoch)> gradual_bits(Module& net, int64_t epochs = 1);

/// How many bits are still to fall, of the slot that is farthest from its configured bits; 0 if no
/// slot has first_bits that can fall. gradual_bits() takes this many steps.
/// Throws: GraphError if the network is not prepared.
int64_t bits_to_fall(Module& net);

}  // namespace quantrain::quant
