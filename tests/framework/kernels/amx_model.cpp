#include "tests/framework/kernels/amx_model.hpp"

#if defined(__AMX_INT8__) || defined(__AMXINT8__)  // Clang 14
#include <cstring>
#include <stdexcept>

#include "framework/kernels/simd/integer_tiles.ipp"

namespace quantrain::kernels::simd {
namespace {

/// A CPU with AVX-512 VNNI whose tiles are the arrays below.
struct TileModel : Avx512Vnni {};

struct Tile {
  int rows = 0;
  int bytes = 0;
  uint8_t at[kTileRows][kTileBytes];
};
Tile tiles[8];
bool is_configured = false;

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

Tile& configured(int tile) {
  require(is_configured, "tiles are not configured");
  return tiles[tile];
}

}  // namespace

template <>
struct Ints<TileModel> : Ints<Avx512Vnni> {};

// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: LDTILECFG, TILERELEASE,
// TILELOADD, TILESTORED, TDPBUSD.
template <>
struct TileUnit<TileModel> {
  static void configure(const TileShapes& shapes) {
    require(shapes.palette == 1 && shapes.start_row == 0, "palette or row");
    for (const uint8_t byte : shapes.reserved) require(byte == 0, "a reserved byte is not 0");
    for (int i = 0; i < 16; ++i) {
      const int rows = shapes.rows[i];
      const int bytes = shapes.bytes[i];
      require(i < 8 ? rows > 0 && rows <= kTileRows && bytes > 0 && bytes <= kTileBytes
                    : rows == 0 && bytes == 0,
              "shape of a tile");
      if (i >= 8) continue;
      tiles[i].rows = rows;
      tiles[i].bytes = bytes;
      std::memset(tiles[i].at, 0, sizeof(tiles[i].at));
    }
    is_configured = true;
  }
  static void release() { is_configured = false; }
  template <int tile>
  static void load(const void* rows, int64_t stride) {
    Tile& t = configured(tile);
    std::memset(t.at, 0, sizeof(t.at));
    for (int i = 0; i < t.rows; ++i) {
      std::memcpy(
          t.at[i], static_cast<const uint8_t*>(rows) + i * stride, static_cast<size_t>(t.bytes));
    }
  }
  template <int tile>
  static void store(void* rows, int64_t stride) {
    const Tile& t = configured(tile);
    for (int i = 0; i < t.rows; ++i) {
      std::memcpy(static_cast<uint8_t*>(rows) + i * stride, t.at[i], static_cast<size_t>(t.bytes));
    }
  }
  template <int sums, int x, int w>
  static void dot() {
    Tile& to = configured(sums);
    const Tile& left = configured(x);
    const Tile& right = configured(w);
    require(sums != x && sums != w && x != w, "a tile is two operands");
    require(left.rows == to.rows && right.bytes == to.bytes && left.bytes == 4 * right.rows,
            "shapes of a product");
    for (int i = 0; i < to.rows; ++i) {
      for (int o = 0; o < to.bytes / 4; ++o) {
        uint32_t sum;
        std::memcpy(&sum, to.at[i] + 4 * o, 4);
        for (int k = 0; k < left.bytes; ++k) {
          const auto weight = static_cast<int8_t>(right.at[k / 4][4 * o + k % 4]);
          sum += static_cast<uint32_t>(left.at[i][k] * weight);
        }
        std::memcpy(to.at[i] + 4 * o, &sum, 4);
      }
    }
  }
};

}  // namespace quantrain::kernels::simd

namespace quantrain::test {

void model_of_dot_tiles(const kernels::DotU8S8& p) {
  using namespace kernels::simd;
  dot_tiles<TileModel>(p);
  require(!is_configured, "tiles are not released");
}

void dot_tiles_of_amx(const kernels::DotU8S8& p) {
  kernels::simd::dot_tiles<kernels::simd::Amx>(p);
}

}  // namespace quantrain::test
#endif
