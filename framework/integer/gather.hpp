#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "framework/arithmetic/stored.hpp"
#include "framework/core/shape.hpp"
#include "framework/integer/channels.hpp"
#include "framework/integer/prepared.hpp"

namespace quantrain::integer {

/// y[i, j, ...] = x[I[i], J[j], ...], or the fill if one of the indices is -1. Moves codes and
/// computes nothing. I, J, ... are the lists of the axes: for each index of y, the index in x, or
/// -1 for the fill. Slices, flips, padding and nearest upsampling can be written as such lists. The
/// codes keep their parameters.   docs/quantization.md (23)
/// Shapes of a sample: x [rows, extent_0, extent_1, ..., run]  ->  y [rows, n_0, n_1, ..., run];
/// n_k is the length of list k.
/// Source: ONNX Slice, Pad (constant), Resize (nearest); a Gather along each axis.
struct Gather {
  static constexpr std::string_view kType = "gather";
  static constexpr bool kKeepsParams = true;
  static constexpr bool kRunsInPlace = false;
  static constexpr ChannelUse kChannels = ChannelUse::kOther;

  struct Axis {
    int64_t extent = 1;          ///< of x along this axis
    std::vector<int32_t> index;  ///< index in x for each index of y; -1: the fill

    friend bool operator==(const Axis&, const Axis&) = default;
    static void describe(auto& axis, auto& fields) {
      fields("extent", axis.extent);
      fields("index", axis.index);
    }
  };
  /// Largest number of axes.
  static constexpr int kMostAxes = Shape::kMaxRank;

  int64_t rows = 1;  ///< extent of the leading axes, which do not change
  std::vector<Axis> axes;
  int32_t fill = 0;  ///< a stored byte
  int64_t run = 1;   ///< extent of the trailing axes, which do not change

  /// index: a list for each axis of one sample of x. An empty list leaves the axis unchanged.
  /// Unchanged leading and trailing axes become rows and run. If all lists are empty, `axes` of
  /// the returned operation is empty.
  static Gather make(const Shape& x,
                     const std::vector<std::vector<int32_t>>& index,
                     int32_t fill = 0);

  /// Whether y contains the fill.
  bool fills() const;
  /// Elements of one row of x and of y.
  int64_t x_row() const;
  int64_t y_row() const;
  std::string_view kernel() const { return "gather"; }
  std::vector<int64_t> input_sizes() const { return {rows * x_row()}; }
  int64_t output_size() const { return rows * y_row(); }
  int32_t input_zero_point(size_t) const { return -1; }
  int32_t output_zero_point() const { return -1; }
  std::optional<CodeClamp> output_codes(const QParams& x) const;
  int64_t prepared_bytes() const;
  int64_t scratch_bytes(int64_t) const { return 0; }
  Channels output_channels(InputChannels inputs) const;
  /// Throws: ShapeError or QuantError naming `where` if there is no axis, if a number or an index
  /// is out of range, or if all indices of an axis are -1.
  void validate(std::string_view where) const;
  friend bool operator==(const Gather&, const Gather&) = default;

  static void describe(auto& op, auto& fields) {
    fields("rows", op.rows);
    fields("axes", op.axes);
    fields("fill", op.fill);
    fields("run", op.run);
  }
};

/// A run of consecutive elements of y that are also consecutive in x, or that are all the fill.
struct GatherRun {
  int64_t from = -1;  ///< offset of the run in an innermost row of x; -1: the fill
  int64_t length = 0;
};
/// Splits an innermost row of y into GatherRuns, in order. `axis` is the last of Gather::axes. Each
/// of its indices moves Gather::run consecutive elements.
std::vector<GatherRun> gather_runs(const Gather::Axis& axis, int64_t run);

/// Gathers n samples of x into y, with `fill` in place of op.fill. runs: gather_runs() of the last
/// axis. T is uint8_t or float.
template <class T>
void gather(const Gather& op, std::span<const GatherRun> runs, int64_t n, const T* x, T fill, T* y);

template <>
class Prepared<Gather> {
 public:
  explicit Prepared(const Gather& op);
  Prepared(const Gather&& op) = delete;
  void run(int64_t n, Inputs inputs, void* output) const;

 private:
  const Gather* op_;
  std::vector<GatherRun> runs_;  // of the last axis
};

}  // namespace quantrain::integer
