#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "framework/arithmetic/stored.hpp"
#include "framework/integer/channels.hpp"
#include "framework/integer/prepared.hpp"

namespace quantrain::integer {

/// y has the same bytes as x, with another shape. A program gives x and y the same place in memory.
/// Shapes of a sample: x, y [size].
/// Source: ONNX Flatten, Reshape.
struct View {
  static constexpr std::string_view kType = "view";
  static constexpr bool kKeepsParams = true;
  static constexpr bool kRunsInPlace = false;
  static constexpr ChannelUse kChannels = ChannelUse::kSame;

  int64_t size = 1;

  std::string_view kernel() const { return "none"; }
  std::vector<int64_t> input_sizes() const { return {size}; }
  int64_t output_size() const { return size; }
  int32_t input_zero_point(size_t) const { return -1; }
  int32_t output_zero_point() const { return -1; }
  std::optional<CodeClamp> output_codes(const QParams&) const { return std::nullopt; }
  int64_t prepared_bytes() const { return 0; }
  int64_t scratch_bytes(int64_t) const { return 0; }
  Channels output_channels(InputChannels inputs) const { return *inputs[0]; }
  void remove_channels(const std::vector<bool>& dead) { size = without_dead(dead, size); }
  /// Throws: ShapeError naming `where` if the size is out of range.
  void validate(std::string_view where) const;
  friend bool operator==(const View&, const View&) = default;

  static void describe(auto& op, auto& fields) { fields("size", op.size); }
};

template <>
class Prepared<View> {
 public:
  explicit Prepared(const View& op) : op_(&op) {}
  Prepared(const View&& op) = delete;
  /// Copies, unless the output is the input.
  void run(int64_t n, Inputs inputs, void* output) const;

 private:
  const View* op_;
};

}  // namespace quantrain::integer
