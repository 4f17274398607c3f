#include "layers/onnx/message.hpp"

#include <bit>
#include <cstring>
#include <limits>
#include <protozero/exception.hpp>
#include <protozero/types.hpp>
#include <protozero/varint.hpp>

#include "framework/core/error.hpp"

namespace quantrain::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "bytes of the file are used as values");

constexpr int kVarint = static_cast<int>(protozero::pbf_wire_type::varint);
constexpr int kFixed64 = static_cast<int>(protozero::pbf_wire_type::fixed64);
constexpr int kDelimited = static_cast<int>(protozero::pbf_wire_type::length_delimited);
constexpr int kFixed32 = static_cast<int>(protozero::pbf_wire_type::fixed32);

/// Decodes a number and removes it from the bytes.
/// Throws: protozero::exception if the bytes end within the number, or it has more than 64 bits.
uint64_t take_varint(std::span<const uint8_t>& bytes) {
  const char* const begin = reinterpret_cast<const char*>(bytes.data());
  const char* at = begin;
  // Near the end of the bytes, protozero takes any number of bytes for a varint, and shifts by 64.
  const size_t most = std::min<size_t>(bytes.size(), protozero::max_varint_length);
  size_t length = 0;
  while (length < most && bytes[length] >= 0x80) ++length;
  if (length == protozero::max_varint_length) throw protozero::varint_too_long_exception();
  const uint64_t value = protozero::decode_varint(&at, begin + bytes.size());
  bytes = bytes.subspan(static_cast<size_t>(at - begin));
  return value;
}

}  // namespace

Message::Message(ReadBudget& budget, std::string_view what, std::span<const uint8_t> bytes)
    : budget_(&budget), what_(what), left_(bytes) {
  if (++budget.messages > ReadBudget::kMostMessages)
    throw DataError("onnx", budget.path, ": has more than ", ReadBudget::kMostMessages, " parts");
}

void Message::fail(std::string_view text) const {
  if (field_ == 0) throw DataError("onnx", budget_->path, ": ", what_, ": ", text);
  throw DataError("onnx", budget_->path, ": ", what_, ", field ", field_, ": ", text);
}

bool Message::next() {
  if (left_.empty()) return false;
  try {
    const uint64_t key = take_varint(left_);
    field_ = 0;
    if (key > std::numeric_limits<uint32_t>::max() || key >> 3 == 0)
      fail("a field has a number that no field can have");
    field_ = static_cast<uint32_t>(key >> 3);
    wire_type_ = static_cast<int>(key & 7);
    integer_ = 0;
    content_ = {};
    uint64_t length = 0;
    switch (wire_type_) {
      case kVarint: integer_ = take_varint(left_); return true;
      case kFixed32: length = 4; break;
      case kFixed64: length = 8; break;
      case kDelimited: length = take_varint(left_); break;
      default: fail("has a wire type that ONNX does not use");
    }
    if (length > left_.size()) fail("is longer than what is left of the file or message");
    content_ = left_.first(static_cast<size_t>(length));
    left_ = left_.subspan(static_cast<size_t>(length));
    return true;
  } catch (const protozero::exception&) {
    fail("truncated, or a number of more than 64 bits");
  }
}

int64_t Message::integer() const {
  if (wire_type_ != kVarint) fail("is not an integer");
  return static_cast<int64_t>(integer_);
}

int32_t Message::small_integer() const {
  const int64_t value = integer();
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
    fail("does not fit 32 bits");
  return static_cast<int32_t>(value);
}

float Message::number() const {
  if (wire_type_ != kFixed32) fail("is not a float");
  float value;
  std::memcpy(&value, content_.data(), sizeof value);
  return value;
}

std::string Message::text() const {
  const std::span<const uint8_t> content = bytes();
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  if (!is_utf8(text)) fail("is not UTF-8");
  return std::string(text);
}

std::span<const uint8_t> Message::bytes() const {
  if (wire_type_ != kDelimited) fail("is not a text, bytes or a message");
  return content_;
}

Message Message::message(std::string_view what) const { return {*budget_, what, bytes()}; }

void Message::append_to(std::vector<int64_t>& integers) const {
  if (wire_type_ == kVarint) {
    integers.push_back(integer());
    return;
  }
  std::span<const uint8_t> packed = bytes();
  try {
    while (!packed.empty()) integers.push_back(static_cast<int64_t>(take_varint(packed)));
  } catch (const protozero::exception&) {
    fail("truncated, or a number of more than 64 bits");
  }
}

void Message::append_to(std::vector<float>& numbers) const {
  const std::span<const uint8_t> values = fixed(sizeof(float));
  const size_t before = numbers.size();
  numbers.resize(before + values.size() / sizeof(float));
  if (!values.empty()) std::memcpy(numbers.data() + before, values.data(), values.size());
}

std::span<const uint8_t> Message::fixed(size_t size) const {
  if (wire_type_ != kDelimited && wire_type_ != (size == 4 ? kFixed32 : kFixed64))
    fail("is not a list of numbers of this size");
  if (content_.size() % size != 0) fail("is not a whole number of elements");
  return content_;
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
    const unsigned first = byte(i);
    if (first < 0x80) {
      ++i;
      continue;
    }
    const size_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first > 0xf4 || text.size() - i <= more) return false;
    // Of the second byte, the values that would be an overlong form, a surrogate, or above
    // 0x10ffff.
    const unsigned least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (byte(i + 1) < least || byte(i + 1) > most) return false;
    for (size_t k = 2; k <= more; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return false;
    }
    i += more + 1;
  }
  return true;
}

}  // namespace quantrain::onnx
