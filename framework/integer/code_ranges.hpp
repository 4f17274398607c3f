#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "framework/integer/channels.hpp"
#include "framework/integer/program.hpp"

namespace quantrain::integer {

/// The possible codes of each channel of each value, if the inputs may hold any bytes.
/// docs/quantization.md (19)
class CodeRanges {
 public:
  /// The program must be valid.
  /// Throws: DataError naming a value if the intervals up to this one take more than memory_limit
  /// bytes.
  explicit CodeRanges(const Program& program,
                      int64_t memory_limit = std::numeric_limits<int64_t>::max());

  /// Throws: GraphError if the program has no such value.
  const Channels& at(int id) const&;
  Channels at(int id) && { return at(id); }

 private:
  std::vector<Channels> of_;
};

}  // namespace quantrain::integer
