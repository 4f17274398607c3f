#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "framework/integer/program.hpp"

namespace quantrain::integer {

/// The constants of a program's products, weights and biases, each once, in the order in which
/// steps first use them. Constants are equal if their bits and integers are.
class ProgramConstants {
 public:
  /// Weights or, if they are empty, biases.
  struct Entry {
    Constant codes{};
    SharedArray<int32_t> numbers{};
  };

  explicit ProgramConstants(const Program& program);

  const std::vector<Entry>& entries() const { return entries_; }
  /// The position of a constant of the program among entries().
  size_t at(const Constant& constant) const { return by_id_.at(constant.id()); }
  size_t at(const SharedArray<int32_t>& numbers) const { return by_id_.at(id(numbers)); }
  /// Bytes of the constants that equal an earlier one, if each is stored on its own.
  int64_t repeated_bytes() const { return repeated_bytes_; }

 private:
  using Positions = std::multimap<uint64_t, size_t>;  // by hash

  static Constant::Id id(const SharedArray<int32_t>& numbers) {
    return {numbers.data(), 32, numbers.size()};
  }
  void add(const Entry& entry, const Constant::Id& id, Positions& positions);

  std::vector<Entry> entries_;
  std::map<Constant::Id, size_t> by_id_;
  int64_t repeated_bytes_ = 0;
};

/// Packs the weights of all products, and lets equal constants share their integers.
void share_constants(Program& program);
/// Says how a model of the program is to keep the weights of all products.
void set_keep(Program& program, KeepWeights keep);

}  // namespace quantrain::integer
