#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quantrain::onnx {

/// Counts what a file holds, so that it cannot make the reader take far more memory than its own
/// size: each message of a few bytes becomes a struct of a few hundred.
struct ReadBudget {
  static constexpr int64_t kMostMessages = int64_t{1} << 20;
  std::string path;      ///< for messages
  int64_t messages = 0;  ///< that were entered so far
};

/// Reads a protobuf message field by field. The bytes are untrusted. Wire types, lengths (in 64
/// bits) and the encoding of texts are checked here, because protozero only asserts, truncates or
/// ignores them. Nested messages are entered by message(), never by recursion.
///   while (message.next()) {
///     if (message.field() == field::Model::kIrVersion) version = message.integer();
///   }
/// A field that is not read is skipped. Every function throws DataError naming the path and the
/// message.
class Message {
 public:
  /// what: the message's name for errors, which must live as long as this object.
  Message(ReadBudget& budget, std::string_view what, std::span<const uint8_t> bytes);

  /// Goes to the next field. Returns false at the end.
  bool next();
  uint32_t field() const { return field_; }

  int64_t integer() const;
  /// An integer that must fit 32 bits.
  int32_t small_integer() const;
  float number() const;
  std::string text() const;
  std::span<const uint8_t> bytes() const;
  Message message(std::string_view what) const;

  // Elements of a repeated field: one, or a packed list.
  void append_to(std::vector<int64_t>& integers) const;
  void append_to(std::vector<float>& numbers) const;
  /// The elements as little-endian bytes. `size` is that of an element, 4 or 8.
  std::span<const uint8_t> fixed(size_t size) const;

  [[noreturn]] void fail(std::string_view text) const;

 private:
  ReadBudget* budget_;
  std::string_view what_;
  std::span<const uint8_t> left_;
  // The field that next() found.
  uint32_t field_ = 0;
  int wire_type_ = -1;
  uint64_t integer_ = 0;              // of a varint
  std::span<const uint8_t> content_;  // of all others
};

/// Whether the text is UTF-8 as RFC 3629 defines it.
bool is_utf8(std::string_view text);

}  // namespace quantrain::onnx
