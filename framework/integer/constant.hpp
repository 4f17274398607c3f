#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "framework/core/shared_array.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain {

/// How a model keeps the weights of its products in memory.
enum class KeepWeights : uint8_t {
  kFast,   ///< in the form that runs fastest: mostly a byte or two for each weight
  kSmall,  ///< weights of 1 to 4 bits in 1, 2 or 4 bits, taken apart in each run
};

}  // namespace quantrain

namespace quantrain::integer {

/// Bytes that `count` packed codes of `bits` bits take.
constexpr int64_t packed_bytes(int64_t count, int bits) { return (count * bits + 7) / 8; }
/// Packs codes of `bits` bits, 1 to 8. Code i takes bits i * bits to i * bits + bits - 1 of the
/// result; bit k is bit k % 8 of byte k / 8. Codes are in two's complement; with 1 bit, +1 is
/// stored as 1, and -1 as 0. Bits that are left over are 0.   docs/format.md
std::vector<uint8_t> pack_codes(std::span<const int8_t> codes, int bits);
/// Writes `count` codes, beginning with code `first`: the inverse of pack_codes().
void unpack_codes(
    std::span<const uint8_t> packed, int bits, int64_t first, int64_t count, int8_t* to);

/// A constant of a program: signed integers of 1 to 8 bits, such as the weights of a product.
/// Copies share the integers. They are stored in one of three ways: as plain bytes, packed, or in
/// the panels of a kernel, which give them back.
class Constant {
 public:
  Constant() = default;
  // Not inlined: they would make the device's program larger.
  Constant(const Constant& other);
  Constant(Constant&& other) noexcept;
  Constant& operator=(const Constant& other);
  Constant& operator=(Constant&& other) noexcept;
  ~Constant();
  /// Plain bytes. validate() of the operation checks that they fit in `bits` bits.
  Constant(SharedArray<int8_t> codes, int bits = 8)
      : bits_(bits), size_(codes.size()), stored_(std::move(codes)) {}
  Constant(std::vector<int8_t> codes, int bits = 8)
      : Constant(SharedArray<int8_t>(std::move(codes)), bits) {}
  /// Packed: packed_bytes(count, bits) bytes.
  Constant(SharedArray<uint8_t> packed, int64_t count, int bits)
      : bits_(bits), size_(count), stored_(std::move(packed)) {}

  int bits() const { return bits_; }
  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// Whether the integers fit in bits() because of how they are stored.
  bool surely_fits() const { return !std::holds_alternative<SharedArray<int8_t>>(stored_); }
  /// Constants with equal ids are the same, as long as both live.
  struct Id {
    const void* data = nullptr;
    int bits = 0;
    int64_t size = 0;

    friend auto operator<=>(const Id&, const Id&) = default;
  };
  Id id() const;
  /// Bytes of the integers as they are stored.
  int64_t stored_bytes() const;

  void copy(int64_t first, int64_t count, int8_t* to) const;
  /// Calls visit(codes) for spans that together are `count` codes from `first` on.
  template <class Visit>
  void each(int64_t first, int64_t count, const Visit& visit) const {
    if (const auto* const plain = std::get_if<SharedArray<int8_t>>(&stored_))
      return visit(std::span(plain->data() + first, static_cast<size_t>(count)));
    int8_t codes[1024];
    while (count > 0) {
      const int64_t n = std::min<int64_t>(count, 1024);
      copy(first, n, codes);
      visit(std::span<const int8_t>(codes, static_cast<size_t>(n)));
      first += n;
      count -= n;
    }
  }
  /// Plain bytes: shared if they are stored so, else a copy.
  SharedArray<int8_t> codes() const;
  std::vector<int8_t> values() const;  ///< a copy
  std::vector<uint8_t> packed() const;
  /// The same integers, packed if that takes fewer bytes than plain ones.
  Constant as_packed() const;
  /// How in_panels() keeps the integers. It changes nothing else.
  KeepWeights keep() const { return keep_; }
  void set_keep(KeepWeights keep) { keep_ = keep; }
  /// The same integers in panels that are kept. Of `shape`, only the weights and groups matter.
  /// `binary` as in kernels::ProductBits.
  Constant in_panels(const kernels::Conv2dShape& shape, bool binary = false) const;
  /// The panels that hold the integers, if they are for this shape; else new panels.
  std::shared_ptr<const kernels::PackedWeightsS8> panels(const kernels::Conv2dShape& shape,
                                                         bool binary = false) const;

  /// Compares bits and integers, however they are stored.
  friend bool operator==(const Constant& a, const Constant& b);

 private:
  using Panels = std::shared_ptr<const kernels::PackedWeightsS8>;

  int bits_ = 8;
  KeepWeights keep_ = KeepWeights::kFast;
  int64_t size_ = 0;
  std::variant<SharedArray<int8_t>, SharedArray<uint8_t>, Panels> stored_;
};

}  // namespace quantrain::integer
