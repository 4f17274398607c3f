#pragma once

#include <cstdint>
#include <optional>

#include "framework/integer/program.hpp"

namespace quantrain::integer {

/// Removes channels whose codes are the same for every input, with their weights, biases and
/// multipliers. Then also removes each earlier channel whose only readers were removed. A removed
/// channel's contribution to the next product is a constant, which is added to the bias of that
/// product. If that bias or its sums could then overflow, all channels that the product reads stay.
/// Before a padded convolution, a channel stays unless its contribution is 0. An operation that
/// works channel by channel drops a channel only if its input and its output both drop it. For
/// every input, all outputs keep their exact bits. A layer keeps at least one channel. The inputs
/// and outputs of the program and of a softmax keep all channels, and so do grouped convolutions,
/// unless they are depthwise. Values that lose channels no longer refer to a node of the recorded
/// graph.
/// docs/quantization.md (19)
/// memory_limit: for what is known of all channels, in bytes, 16 for each channel of each value. By
/// default that of load_program() for a file of this program.
/// Throws: like validate(program); DataError naming a layer beyond the limit.
Program remove_dead_channels(const Program& program, std::optional<int64_t> memory_limit = {});

}  // namespace quantrain::integer
