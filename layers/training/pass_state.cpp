#include "layers/training/pass_state.hpp"

#include <algorithm>
#include <cstring>

#include "framework/core/error.hpp"
#include "framework/distributed/bytes.hpp"
#include "layers/training/share_state.hpp"

namespace quantrain {
namespace {

constexpr const char* kShards = "shards";

bool has_changed(const NamedState& a, const NamedState& b) {
  const std::span<const uint8_t> bytes = a.bytes();
  return std::memcmp(bytes.data(), b.bytes().data(), bytes.size()) != 0;
}

}  // namespace

PassState::PassState(Module& net) {
  std::vector<std::pair<Module*, bool>> all;
  net.append_modes(0, all);
  for (const auto& [module, mode] : all) {
    const auto is_same = [of = module](const Part& part) { return part.module == of; };
    if (std::any_of(parts_.begin(), parts_.end(), is_same)) continue;  // a shared layer
    Part part{module, module->pass_state(), {}};
    for (const NamedState& entry : part.own) part.before.push_back(entry.copy());
    if (!part.own.empty()) parts_.push_back(std::move(part));
  }
}

void PassState::keep() {
  for (Part& part : parts_) {
    for (size_t i = 0; i < part.own.size(); ++i) {
      if (has_changed(part.own[i], part.before[i])) part.before[i].copy_values(part.own[i]);
    }
  }
}

void PassState::restore() {
  for (Part& part : parts_) {
    for (size_t i = 0; i < part.own.size(); ++i) {
      if (has_changed(part.own[i], part.before[i])) part.own[i].copy_values(part.before[i]);
    }
  }
}

std::vector<uint8_t> PassState::changes() const {
  std::vector<uint8_t> bytes;
  for (size_t p = 0; p < parts_.size(); ++p) {
    for (size_t i = 0; i < parts_[p].own.size(); ++i) {
      const NamedState& entry = parts_[p].own[i];
      if (!has_changed(entry, parts_[p].before[i])) continue;
      append_value(bytes, uint64_t{p});
      append_value(bytes, uint64_t{i});
      append_values(bytes, entry);
    }
  }
  return bytes;
}

void PassState::join(const std::vector<std::vector<uint8_t>>& changes,
                     std::span<const int64_t> samples) {
  std::vector<ShardStates> shards(parts_.size());
  std::vector<bool> changed(parts_.size());
  for (size_t p = 0; p < parts_.size(); ++p) {
    shards[p].samples.assign(samples.begin(), samples.end());
    shards[p].after.resize(changes.size());
  }
  for (size_t shard = 0; shard < changes.size(); ++shard) {
    for (ByteReader reader(changes[shard]); !reader.at_end();) {
      const auto p = reader.value<uint64_t>();
      const auto i = reader.value<uint64_t>();
      if (p >= parts_.size() || i >= parts_[p].own.size())
        throw DistributedError(kShards, "a rank sent another network's state");
      std::vector<NamedState>& after = shards[p].after[shard];
      if (after.empty()) {
        for (const NamedState& entry : parts_[p].before) after.push_back(entry.copy());
      }
      read_values(after[i], reader);
      changed[p] = true;
    }
  }
  try {
    for (size_t p = 0; p < parts_.size(); ++p) {
      if (!changed[p]) continue;
      for (std::vector<NamedState>& after : shards[p].after) {
        if (!after.empty()) continue;
        for (const NamedState& entry : parts_[p].before) after.push_back(entry.copy());
      }
      parts_[p].module->join_shards(shards[p]);
    }
  } catch (...) {
    restore();
    throw;
  }
}

bool PassState::contains(const Tensor& tensor) const {
  return std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) {
    return std::any_of(part.own.begin(), part.own.end(), [&](const NamedState& entry) {
      return entry.tensor.same_as(tensor);
    });
  });
}

}  // namespace quantrain
