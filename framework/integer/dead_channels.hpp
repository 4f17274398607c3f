#pragma once

#include "framework/integer/program.hpp"

namespace quantrain::integer {

/// The same program without output channels whose codes are the same for every input. Such a
/// channel goes together with what only it needs: its weights, biases and multipliers, and the
/// channels in front of it that nothing else reads. What it adds to the next product is a constant,
/// and becomes a part of the bias; in front of a padded convolution it stays, unless it adds
/// nothing. All outputs are equal for all inputs, bit by bit.   docs/quantization.md (19) A layer
/// keeps at least one channel, and grouped convolutions all of theirs. Values that lose channels no
/// longer name a node of the recorded graph.
/// Throws: as validate(program).
Program remove_dead_channels(const Program& program);

}  // namespace quantrain::integer
