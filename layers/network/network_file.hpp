#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "layers/network/network.hpp"

namespace quantrain {

/// A file holds at most this many steps, and lists of integers as members of at most this length.
inline constexpr int64_t kMostNetworkSteps = int64_t{1} << 12;
inline constexpr int64_t kMostMemberIntegers = int64_t{1} << 16;

/// Writes a network to one safetensors file, completely or not at all: layers, wiring, parameters,
/// buffers, modes, metadata. Of a network prepared for quantization also the slots, their state and
/// the QConfig, so that another program goes on with the training, to the same bits. The file is
/// described in docs/format.md. A module of another class is traced first:
///   save_network(trace(net, example), path);
/// The file does not hold the optimizer: see layers/training/checkpoint.hpp.
/// Throws: DataError naming the path if the file cannot be written, or the metadata have a key that
/// the file uses itself: "format", "version", "layout", "network", "quantization"; GraphError if a
/// layer's class is not registered; QuantError if a slot holds what a file cannot describe.
void save_network(const Network& net, const std::string& path);

/// Reads a network. Layers and operations of the program's own must be registered before; slots are
/// filled in programs that include quant/prepare/scopes.hpp or quant/prepare/prepare.hpp.
/// Throws: DataError naming the path if the file is damaged, is no network, has another version or
/// layout, holds what nothing reads or lacks what something reads, or has a number or length out of
/// range; if it is prepared, and this program cannot fill slots; GraphError or ShapeError as
/// Network() and make_layer(); QuantError for the slots.
Network load_network(const std::string& path);
/// The same for the bytes of a file. `where` names the file in messages.
Network parse_network(std::span<const uint8_t> file, std::string_view where);

/// Fills the slots of a network as Preparation::describe() said. most_bytes: a limit for the new
/// state. quant/ sets this function.
using RestoreSlots = void (*)(Module& net, std::string_view description, int64_t most_bytes);
void set_restore_slots(RestoreSlots restore);

}  // namespace quantrain
