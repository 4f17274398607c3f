#include "layers/training/share_state.hpp"

#include <cstring>
#include <string>

namespace quantrain {

void share_state(Communicator& ranks, std::vector<NamedState> state) {
  Communicator::Bytes bytes;
  if (ranks.is_first()) {
    for (const NamedState& entry : state) {
      const std::span<const uint8_t> values = entry.bytes();
      bytes.insert(bytes.end(), values.begin(), values.end());
    }
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
  const uint8_t* from = bytes.data();
  for (NamedState& entry : state) {
    const size_t size = entry.bytes().size();
    if (entry.holds_integers()) {
      std::vector<int64_t> values(size / sizeof(int64_t));
      std::memcpy(values.data(), from, size);
      entry.integers.set(values);
    } else if (size > 0) {
      std::memcpy(entry.tensor.mutable_data(), from, size);
    }
    from += size;
  }
}

void share_metrics(Communicator& ranks, Metrics& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) {
    text += name + '\0';
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  text = ranks.broadcast(text);
  metrics.clear();
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\0', at);
    const std::string name = text.substr(at, end - at);
    double value = 0.0;
    std::memcpy(&value, text.data() + end + 1, sizeof value);
    metrics[name] = value;
    at = end + 1 + sizeof value;
  }
}

}  // namespace quantrain
