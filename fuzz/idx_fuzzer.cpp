// Reads an IDX file, plain or gzipped.
#include "framework/data/idx.hpp"
#include "fuzz/harness.hpp"

namespace quantrain::fuzz {

bool accepts(std::span<const uint8_t> input) {
  constexpr int64_t kLimit = int64_t{64} << 20;
  const MemoryFile file(input);
  const IdxArray array = read_idx_u8(file.path(), kLimit);
  if (static_cast<int64_t>(array.bytes.size()) != array.shape.elements())
    finding("the bytes do not fill the shape");
  return true;
}

}  // namespace quantrain::fuzz
