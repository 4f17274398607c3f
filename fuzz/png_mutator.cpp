// Mutates a PNG file, then corrects the checksums of its chunks, because libpng refuses a file with
// a wrong one before it looks at anything else.
#include <zlib.h>

#include <cstddef>
#include <cstdint>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                          size_t size,
                                          size_t most,
                                          unsigned int seed) {
  const size_t written = LLVMFuzzerMutate(data, size, most);
  if (seed % 8 == 0) return written;
  constexpr size_t kSignature = 8;
  constexpr size_t kAround = 12;  // length, type and checksum
  for (size_t at = kSignature; at < written && written - at >= kAround;) {
    uint8_t* const chunk = data + at;
    const size_t length =
        size_t{chunk[0]} << 24 | size_t{chunk[1]} << 16 | size_t{chunk[2]} << 8 | size_t{chunk[3]};
    if (length > written - at - kAround) break;
    const uLong sum = ::crc32(0, chunk + 4, static_cast<uInt>(length + 4));
    for (size_t i = 0; i < 4; ++i)
      chunk[8 + length + i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
    at += length + kAround;
  }
  return written;
}
