#include "framework/integer/program_constants.hpp"

#include <algorithm>

#include "framework/core/hash.hpp"

namespace quantrain::integer {
namespace {

uint64_t hash_of(const ProgramConstants::Entry& entry) {
  Fnv1a hash;
  hash.add(static_cast<uint8_t>(entry.codes.bits()));
  entry.codes.each(0, entry.codes.size(), [&](std::span<const int8_t> codes) {
    for (const int8_t code : codes) hash.add(static_cast<uint8_t>(code));
  });
  for (const int32_t number : entry.numbers) {
    for (int shift = 0; shift < 32; shift += 8) hash.add(static_cast<uint8_t>(number >> shift));
  }
  return hash.value();
}

}  // namespace

void ProgramConstants::add(const Entry& entry, const Constant::Id& id, Positions& positions) {
  if (id.size == 0) return;
  const auto [known, is_new] = by_id_.try_emplace(id, entries_.size());
  if (is_new) {
    const uint64_t hash = hash_of(entry);
    auto [at, end] = positions.equal_range(hash);
    at = std::find_if(at, end, [&](const auto& position) {
      const Entry& other = entries_[position.second];
      return other.codes == entry.codes && other.numbers == entry.numbers;
    });
    if (at == end) {
      positions.emplace(hash, entries_.size());
      entries_.push_back(entry);
      return;
    }
    known->second = at->second;
  }
  repeated_bytes_ += packed_bytes(id.size, id.bits);
}

ProgramConstants::ProgramConstants(const Program& program) {
  Positions positions;
  for (const Step& step : program.steps) {
    const QuantizedProduct* const p = product(step.operation);
    if (p == nullptr) continue;
    add({.codes = p->weight}, p->weight.id(), positions);
    add({.numbers = p->bias}, id(p->bias), positions);
  }
}

void share_constants(Program& program) {
  const ProgramConstants constants(program);
  std::vector<ProgramConstants::Entry> packed = constants.entries();
  for (ProgramConstants::Entry& entry : packed) entry.codes = entry.codes.as_packed();
  for (Step& step : program.steps) {
    QuantizedProduct* const p = product(step.operation);
    if (p == nullptr) continue;
    if (!p->weight.empty()) p->weight = packed[constants.at(p->weight)].codes;
    if (!p->bias.empty()) p->bias = packed[constants.at(p->bias)].numbers;
  }
}

void set_keep(Program& program, KeepWeights keep) {
  for (Step& step : program.steps) {
    if (QuantizedProduct* const p = product(step.operation)) p->weight.set_keep(keep);
  }
}

}  // namespace quantrain::integer
