#include "layers/training/share_state.hpp"

#include <string>

namespace quantrain {

void append_values(Communicator::Bytes& to, const NamedState& entry) {
  const std::span<const uint8_t> values = entry.bytes();
  append_bytes(to, values.data(), values.size());
}

void read_values(NamedState& entry, ByteReader& from) {
  const size_t size = entry.bytes().size();
  if (entry.holds_integers()) {
    std::vector<int64_t> values(size / sizeof(int64_t));
    from.copy(values.data(), size);
    entry.integers.set(values);
  } else if (size > 0) {
    from.copy(entry.tensor.mutable_data(), size);
  }
}

void share_state(Communicator& ranks, std::vector<NamedState> state) {
  Communicator::Bytes bytes;
  if (ranks.is_first()) {
    for (const NamedState& entry : state) append_values(bytes, entry);
  }
  bytes = ranks.broadcast(bytes);
  size_t expected = 0;
  for (const NamedState& entry : state) expected += entry.bytes().size();
  if (bytes.size() != expected)
    throw DistributedError("ranks",
                           "the state of rank 0 has ",
                           bytes.size(),
                           " bytes, this rank's ",
                           expected,
                           ": start all ranks with the same program, data, options and seed");
  ByteReader reader(bytes);
  for (NamedState& entry : state) read_values(entry, reader);
}

void share_metrics(Communicator& ranks, Metrics& metrics) {
  Communicator::Bytes bytes;
  for (const auto& [name, value] : metrics) {
    append_text(bytes, name);
    append_value(bytes, value);
  }
  bytes = ranks.broadcast(bytes);
  metrics.clear();
  for (ByteReader reader(bytes); !reader.at_end();) {
    const std::string name = reader.text();
    metrics[name] = reader.value<double>();
  }
}

}  // namespace quantrain
