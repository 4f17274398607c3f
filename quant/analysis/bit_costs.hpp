#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/integer/program.hpp"
#include "quant/analysis/sensitivity.hpp"

namespace quantrain::quant {

/// What a model costs.
struct BitCosts {
  int64_t bytes = 0;  ///< of the stored network: integer::size_bytes()
  int64_t ram = 0;    ///< for one sample on this number of threads: integer::memory()
  /// Multiply-adds of one sample, each weighted by its bits: weight bits * input bits / 64. So an
  /// 8-bit network has as many as integer::multiply_adds(), a 4-bit network a quarter.
  double multiply_adds = 0.0;
};

/// Costs of a converted program.
BitCosts costs_of(const integer::Program& program);

/// The bits of each part that has a choice.
using BitsOfParts = std::map<std::pair<std::string, LayerPart>, int>;

/// What a program would cost with other bits, exactly. Stored weights take their bits
/// (constant.hpp). RAM does not depend on bits, because values take a byte for each code.
class CostModel {
 public:
  explicit CostModel(integer::Program program);
  BitCosts with(const BitsOfParts& bits) const;

 private:
  int bits_of(int value, const BitsOfParts& bits) const;

  integer::Program program_;
  BitCosts own_;             // with the program's own bits; of multiply-adds none
  std::vector<int> source_;  // of a value that has the codes of another: that value; else -1
};

}  // namespace quantrain::quant
