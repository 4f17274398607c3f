#include "framework/integer/program_constants.hpp"

#include <algorithm>

#include "framework/core/hash.hpp"

namespace quantrain::integer {
namespace {

uint64_t hash_of(const Constant& constant) {
  Fnv1a hash;
  hash.add(static_cast<uint8_t>(constant.bits()));
  constant.each(0, constant.size(), [&](std::span<const int8_t> codes) {
    for (const int8_t code : codes) hash.add(static_cast<uint8_t>(code));
  });
  return hash.value();
}

uint64_t hash_of(const SharedArray<int32_t>& numbers) {
  Fnv1a hash;
  for (const int32_t number : numbers) {
    for (int shift = 0; shift < 32; shift += 8) hash.add(static_cast<uint8_t>(number >> shift));
  }
  return hash.value();
}

}  // namespace

template <class T>
void ProgramConstants::add(const T& constant,
                           const Constant::Id& id,
                           int64_t bytes,
                           Positions& positions) {
  if (constant.empty()) return;
  const auto [known, is_new] = by_id_.try_emplace(id, entries_.size());
  if (is_new) {
    const uint64_t hash = hash_of(constant);
    auto [at, end] = positions.equal_range(hash);
    const auto is_equal = [&](const auto& position) {
      const auto* const entry = std::get_if<T>(&entries_[position.second]);
      return entry != nullptr && *entry == constant;
    };
    at = std::find_if(at, end, is_equal);
    if (at == end) {
      positions.emplace(hash, entries_.size());
      entries_.emplace_back(constant);
      return;
    }
    known->second = at->second;
  }
  repeated_bytes_ += bytes;
}

ProgramConstants::ProgramConstants(const Program& program) {
  Positions positions;
  for (const Step& step : program.steps) {
    const QuantizedProduct* const p = product(step.operation);
    if (p == nullptr) continue;
    const Constant& weight = p->weight;
    add(weight, weight.id(), packed_bytes(weight.size(), weight.bits()), positions);
    add(p->bias, id(p->bias), p->bias.size() * 4, positions);
  }
}

void share_constants(Program& program) {
  for (Step& step : program.steps) {
    if (QuantizedProduct* const p = product(step.operation)) p->weight = p->weight.as_packed();
  }
  const ProgramConstants constants(program);
  for (Step& step : program.steps) {
    QuantizedProduct* const p = product(step.operation);
    if (p == nullptr) continue;
    if (!p->weight.empty())
      p->weight = std::get<Constant>(constants.entries()[constants.at(p->weight)]);
    if (!p->bias.empty())
      p->bias = std::get<SharedArray<int32_t>>(constants.entries()[constants.at(p->bias)]);
  }
}

}  // namespace quantrain::integer
