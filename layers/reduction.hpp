#pragma once

#include <vector>

#include "layers/module.hpp"

// Layers that reduce axes of each sample.
namespace quantrain {

struct ReductionOptions {
  bool keepdim = false;  ///< keep the reduced axes, with extent 1
};

/// The members of Mean and Max.
struct ReductionMembers {
  std::vector<int> axes;
  ReductionOptions options;
  static void describe(auto& m, auto& member) {
    member("axes", m.axes);
    member("keepdim", m.options.keepdim);
  }
};

/// Mean over one axis or several neighbouring axes: Mean{1}, Mean{{1, 2}}. Negative axes count from
/// the end. An integer network computes it as an average pool, which rounds once.
/// docs/quantization.md (10)
/// Shapes: x [N, ..., K, ...]  ->  y [N, ..., ...], or [N, ..., 1, ...] with keepdim.
/// Gradient: grad_x = grad_y / K, where K is the number of elements that are reduced to one.
/// Source: ONNX ReduceMean.
class Mean : public Module {
 public:
  /// Throws: ShapeError if the list of axes is empty or contains the batch axis.
  explicit Mean(std::vector<int> axes, ReductionOptions options = {});
  explicit Mean(int axis, ReductionOptions options = {}) : Mean(std::vector<int>{axis}, options) {}
  static constexpr std::string_view kType = "Mean";
  using Members = ReductionMembers;
  static Mean from(const Members& m) { return Mean(m.axes, m.options); }
  Members members() const { return {axes_, options_}; }
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError if x lacks an axis or has 2^31 elements or more, if a reduced axis or an
  /// axis between it and the batch axis is empty, if an axis is listed twice, if a negative axis
  /// means the batch axis, or if the axes are not next to each other. For codes there is one limit
  /// more:
  /// ShapeError if a sample has more than 2^20 elements in the axes before the reduced ones, in the
  /// reduced ones, or in the axes after them.
  Tensor forward(const Tensor& x) override;

 private:
  std::vector<int> axes_;
  ReductionOptions options_;
};

/// Largest element over one axis or several neighbouring axes. An integer network computes it as a
/// max pool.   docs/quantization.md (10)
/// Shapes: as Mean.
/// Gradient: grad_x = grad_y at the largest element (the first among equals), else 0.
/// Source: ONNX ReduceMax.
class Max : public Module {
 public:
  /// Throws: as Mean.
  explicit Max(std::vector<int> axes, ReductionOptions options = {});
  explicit Max(int axis, ReductionOptions options = {}) : Max(std::vector<int>{axis}, options) {}
  static constexpr std::string_view kType = "Max";
  using Members = ReductionMembers;
  static Max from(const Members& m) { return Max(m.axes, m.options); }
  Members members() const { return {axes_, options_}; }
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: as Mean; ShapeError if more than 65,536 elements are reduced to one and x requires a
  /// gradient.
  Tensor forward(const Tensor& x) override;

 private:
  std::vector<int> axes_;
  ReductionOptions options_;
};

}  // namespace quantrain
