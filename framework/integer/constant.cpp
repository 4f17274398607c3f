#include "framework/integer/constant.hpp"

namespace quantrain::integer {

std::vector<uint8_t> pack_codes(std::span<const int8_t> codes, int bits) {
  const unsigned mask = (1u << bits) - 1;
  std::vector<uint8_t> bytes;
  bytes.reserve(static_cast<size_t>(packed_bytes(std::ssize(codes), bits)));
  unsigned pending = 0;
  int held = 0;
  for (const int8_t code : codes) {
    const unsigned field = bits == 1 ? code > 0 : static_cast<unsigned>(code) & mask;
    pending |= field << held;
    for (held += bits; held >= 8; held -= 8, pending >>= 8)
      bytes.push_back(static_cast<uint8_t>(pending));
  }
  if (held > 0) bytes.push_back(static_cast<uint8_t>(pending));
  return bytes;
}

void unpack_codes(
    std::span<const uint8_t> packed, int bits, int64_t first, int64_t count, int8_t* to) {
  for (int64_t i = first; i < first + count; ++i) {
    const auto byte = static_cast<size_t>(i * bits / 8);
    const unsigned low = packed[byte];
    const unsigned high = byte + 1 < packed.size() ? packed[byte + 1] : 0u;
    const unsigned field = (low | high << 8) >> (i * bits % 8);
    // Moves the code to the top of a byte and back, which extends its sign.
    const auto top = static_cast<int8_t>(field << (8 - bits));
    *to++ = static_cast<int8_t>(bits == 1 ? (top < 0 ? 1 : -1) : top >> (8 - bits));
  }
}

Constant::Constant(const Constant& other) = default;
Constant::Constant(Constant&& other) noexcept = default;
Constant& Constant::operator=(const Constant& other) = default;
Constant& Constant::operator=(Constant&& other) noexcept = default;
Constant::~Constant() = default;

Constant::Id Constant::id() const {
  const auto with = [&](const void* data) { return Id{data, bits_, size_}; };
  if (const auto* const panels = std::get_if<Panels>(&stored_)) return with(panels->get());
  if (const auto* const packed = std::get_if<SharedArray<uint8_t>>(&stored_))
    return with(packed->data());
  return with(std::get<SharedArray<int8_t>>(stored_).data());
}

int64_t Constant::stored_bytes() const {
  if (const auto* const panels = std::get_if<Panels>(&stored_)) return (*panels)->bytes();
  if (const auto* const packed = std::get_if<SharedArray<uint8_t>>(&stored_)) return packed->size();
  return size_;
}

void Constant::copy(int64_t first, int64_t count, int8_t* to) const {
  if (const auto* const panels = std::get_if<Panels>(&stored_))
    return (*panels)->unpack(first, count, to);
  if (const auto* const packed = std::get_if<SharedArray<uint8_t>>(&stored_)) {
    const std::span bytes(packed->data(), static_cast<size_t>(packed->size()));
    return unpack_codes(bytes, bits_, first, count, to);
  }
  std::copy_n(std::get<SharedArray<int8_t>>(stored_).data() + first, count, to);
}

SharedArray<int8_t> Constant::codes() const {
  if (const auto* const plain = std::get_if<SharedArray<int8_t>>(&stored_)) return *plain;
  return values();
}

std::vector<int8_t> Constant::values() const {
  std::vector<int8_t> values(static_cast<size_t>(size_));
  copy(0, size_, values.data());
  return values;
}

std::vector<uint8_t> Constant::packed() const {
  if (const auto* const packed = std::get_if<SharedArray<uint8_t>>(&stored_))
    return {packed->begin(), packed->end()};
  const SharedArray<int8_t> plain = codes();
  return pack_codes(std::span(plain.data(), static_cast<size_t>(size_)), bits_);
}

Constant Constant::as_packed() const {
  if (bits_ == 8 || std::holds_alternative<SharedArray<uint8_t>>(stored_)) return *this;
  return {SharedArray<uint8_t>(packed()), size_, bits_};
}

std::shared_ptr<const kernels::PackedWeightsS8> Constant::panels(const kernels::Conv2dShape& shape,
                                                                 bool binary) const {
  const auto* const panels = std::get_if<Panels>(&stored_);
  if (panels != nullptr && kernels::same_weights((*panels)->shape(), shape) &&
      (*panels)->bits().binary == binary) {
    // The same weights may have another form for another image.
    using kernels::PackedWeightsS8;
    const kernels::FewBits few = (*panels)->layout().few;
    if (few == PackedWeightsS8::planned(shape, (*panels)->bits()).layout().few) return *panels;
  }
  const SharedArray<int8_t> plain = codes();
  const kernels::ProductBits bits{.weights = bits_, .binary = binary};
  return std::make_shared<const kernels::PackedWeightsS8>(shape, plain.data(), bits);
}

Constant Constant::in_panels(const kernels::Conv2dShape& shape, bool binary) const {
  const kernels::ProductBits bits{
      .weights = bits_, .binary = binary, .kept = true, .small = keep_ == KeepWeights::kSmall};
  std::shared_ptr<kernels::PackedWeightsS8> panels;
  {
    const SharedArray<int8_t> plain = codes();
    panels = std::make_shared<kernels::PackedWeightsS8>(shape, plain.data(), bits);
  }
  panels->leave_pool();  // copies them, when the plain codes are gone
  Constant result = *this;
  result.stored_ = Panels(panels);
  return result;
}

bool operator==(const Constant& a, const Constant& b) {
  if (a.id() == b.id()) return true;
  if (a.bits_ != b.bits_ || a.size_ != b.size_) return false;
  const auto* const x = std::get_if<SharedArray<uint8_t>>(&a.stored_);
  const auto* const y = std::get_if<SharedArray<uint8_t>>(&b.stored_);
  if (x != nullptr && y != nullptr) return *x == *y;
  return a.codes() == b.codes();
}

}  // namespace quantrain::integer
