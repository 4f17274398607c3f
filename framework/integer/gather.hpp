#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "framework/core/shape.hpp"
#include "framework/integer/prepared.hpp"

namespace quantrain::integer {

/// Moves codes, and computes nothing: along each axis a list says which index of x is at each place
/// of y, and -1 where y has the fill instead; y[i, j, ...] = x[I[i], J[j], ...], or the fill where
/// any of them is -1. Slices, flips, padding and nearest upsampling are such lists. The parameters
/// of the codes stay.   docs/quantization.md (23)
/// Shapes of a sample: x [rows, extent_0, extent_1, ..., run]  ->  y [rows, n_0, n_1, ..., run];
/// n_k is the length of list k.
/// Source: ONNX Slice, Pad (constant), Resize (nearest); a Gather along each axis.
struct Gather {
  static constexpr std::string_view kType = "gather";
  static constexpr bool kKeepsParams = true;
  static constexpr bool kRunsInPlace = false;

  struct Axis {
    int64_t extent = 1;          ///< of x
    std::vector<int32_t> index;  ///< of x at each place of y; -1: the fill

    friend bool operator==(const Axis&, const Axis&) = default;
    static void describe(auto& axis, auto& fields) {
      fields("extent", axis.extent);
      fields("index", axis.index);
    }
  };
  /// Axes that a value may have.
  static constexpr int kMostAxes = Shape::kMaxRank;

  int64_t rows = 1;  ///< of the axes in front, which stay
  std::vector<Axis> axes;
  int32_t fill = 0;  ///< a stored byte
  int64_t run = 1;   ///< elements of the axes behind, which stay

  /// Lists for each axis of one sample of x; an empty one is an axis that stays. Axes that stay in
  /// front and behind become rows and run. No axis at all: nothing moves.
  static Gather make(const Shape& x,
                     const std::vector<std::vector<int32_t>>& index,
                     int32_t fill = 0);

  /// Whether some place of y has the fill.
  bool fills() const;
  /// Elements of one row of x and of y.
  int64_t x_row() const;
  int64_t y_row() const;
  std::string_view kernel() const { return "gather"; }
  std::vector<int64_t> input_sizes() const { return {rows * x_row()}; }
  int64_t output_size() const { return rows * y_row(); }
  /// Throws: ShapeError or QuantError naming `where` for numbers that make no sense, an axis that
  /// takes nothing of x, or an index that x does not have.
  void validate(std::string_view where) const;
  friend bool operator==(const Gather&, const Gather&) = default;

  static void describe(auto& op, auto& fields) {
    fields("rows", op.rows);
    fields("axes", op.axes);
    fields("fill", op.fill);
    fields("run", op.run);
  }
};

/// A run of elements of y that lie one after the other in x too, or are all the fill.
struct GatherRun {
  int64_t from = -1;  ///< first element in its row of x; -1: the fill
  int64_t length = 0;
};
/// The runs of one row of an axis whose elements have `run` places each, in order.
std::vector<GatherRun> gather_runs(const Gather::Axis& axis, int64_t run);

/// y = the gather of n samples of x; `fill` stands where op's is meant. For T of uint8_t and float.
template <class T>
void gather(const Gather& op, std::span<const GatherRun> runs, int64_t n, const T* x, T fill, T* y);

template <>
class Prepared<Gather> {
 public:
  explicit Prepared(const Gather& op);
  void run(int64_t n, Inputs inputs, void* output) const;

 private:
  const Gather* op_;
  std::vector<GatherRun> runs_;  // of the last axis
};

}  // namespace quantrain::integer
