#include <algorithm>

#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/integer/channels.hpp"
#include "framework/kernels/integer/integer.hpp"

// Packs the operands of products with fewer than 8 bits (FewBits in params.hpp).
namespace quantrain::kernels {

Buffer<uint8_t> packed_bits(int64_t rows, int64_t channels, const uint8_t* x) {
  const int64_t bytes = bit_bytes(channels);
  Buffer<uint8_t> bits(rows * bytes);
  const int64_t grain = std::max<int64_t>(1, kBlockProducts / std::max<int64_t>(channels, 1));
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    integer_table().pack_bits_u8(
        end - begin, channels, x + begin * channels, bits.data() + begin * bytes);
  });
  return bits;
}

Buffer<int8_t> packed_signs(const Conv2dShape& s, const int8_t* w) {
  const int64_t bytes = bit_bytes(s.c);
  Buffer<int8_t> signs(s.o * s.kh * s.kw * bytes);
  std::fill(signs.begin(), signs.end(), int8_t{0});
  for (int64_t tap = 0; tap < s.o * s.kh * s.kw; ++tap) {
    for (int64_t c = 0; c < s.c; ++c) {
      const int sign = w[tap * s.c + c] > 0 ? 1 : 0;
      signs.data()[tap * bytes + c / 8] |= static_cast<int8_t>(sign << c % 8);
    }
  }
  return signs;
}

// Packs one row of the convolution's kernel, like pack_segment(). Absent outputs and terms get the
// weight 0 or, of signs, the bit 0.
void PackedWeightsS8::pack_fields(int64_t count, const int8_t* rows, int8_t* to) const {
  const int64_t fields = layout_.per_byte();
  const int64_t width = 8 / fields;
  const bool signs = layout_.few == FewBits::kEighths;
  for (int64_t k = 0; k < 4 * quads_; k += 4 * fields, to += quad_bytes()) {
    for (int64_t o = 0; o < layout_.width; ++o) {
      for (int64_t i = 0; i < 4; ++i) {
        unsigned byte = 0;
        for (int64_t field = 0; field < fields; ++field) {
          const int64_t at = k + 4 * field + i;
          const int weight = o < count && at < length_ ? rows[o * shape_.kh * length_ + at] : 0;
          const int raised = signs ? (weight > 0 ? 1 : 0) : weight + layout_.raised();
          byte |= static_cast<unsigned>(raised) << field * width;
        }
        to[4 * o + i] = static_cast<int8_t>(byte);
      }
    }
  }
}

}  // namespace quantrain::kernels
