#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "layers/onnx/model.hpp"

// Values that are known when a model is imported: weights, and the shape arithmetic that exporters
// write as nodes.
namespace quantrain::onnx {

/// Why a node cannot be imported, for the list that the user sees.
struct Refusal {
  std::string reason;
};

/// An integer of shape arithmetic: n, or n times the number of samples in a batch, which is not
/// known.
struct Extent {
  int64_t n = 0;
  bool batch = false;

  friend bool operator==(const Extent&, const Extent&) = default;
};

/// A dense array of floats, or of integers (also bools).
struct Constant {
  std::vector<int64_t> dims;
  std::variant<std::vector<float>, std::vector<Extent>> values;

  int64_t elements() const;
  bool is_float() const { return values.index() == 0; }
  /// The elements as floats. Throws: Refusal if one is the batch extent.
  std::vector<float> floats() const;
  /// The elements as integers. Throws: Refusal if they are floats, or one is the batch extent.
  std::vector<int64_t> integers() const;
  const std::vector<Extent>& extents() const&;
};
using ConstantPtr = std::shared_ptr<const Constant>;

/// Throws: DataError like floats_of() and integers_of().
Constant to_constant(const StoredTensor& tensor);

/// How many elements of constants all nodes may read and make: some, and a multiple of the file's
/// size. So a small file takes neither memory nor time with a Range of 2^40 elements, or with many
/// nodes that read the same large constant. The places of a Resize count as elements, too.
class FoldBudget {
 public:
  FoldBudget(int64_t some, int64_t file_bytes) : left_(some + 8 * file_bytes) {}
  /// Throws: Refusal if the budget is used up.
  void take(int64_t elements);

 private:
  int64_t left_;
};

/// Whether fold() knows an operator, if its inputs are constants.
bool is_foldable(const std::string& op_type);
/// The outputs of a node whose inputs are constants; an absent input is null. Shape and Size, whose
/// input need not be a constant, are folded by fold_shape().
/// Throws: Refusal if the inputs or attributes are invalid, if the budget is used up, or if a result
/// depends on the batch extent in another way than by a factor; DataError from Node::get().
std::vector<ConstantPtr> fold(const Node& node,
                              const std::vector<ConstantPtr>& inputs,
                              int64_t opset,
                              FoldBudget& budget);
/// The output of a node Shape or Size whose input has this shape.
ConstantPtr fold_shape(const Node& node, const std::vector<Extent>& shape);

// Shared with the import of nodes whose input is no constant.

/// Product of the extents. Throws: Refusal if one is negative, or the product of those that are not
/// 0 overflows.
int64_t product(const std::vector<int64_t>& dims);

/// axis in [0, rank). Throws: Refusal.
int checked_axis(int64_t axis, int64_t rank);
/// The axes of Squeeze, Unsqueeze and reductions: an input from opset 13 or 18 on, before that an
/// attribute. Sorted. Throws: Refusal if one is not in [-rank, rank) or occurs twice.
std::vector<int> checked_axes(std::vector<int64_t> axes, int64_t rank);
/// Start, end and step of ONNX's Slice for an axis of this extent, so that the elements are start,
/// start + step, ... , count of them.
struct SliceRange {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};
SliceRange slice_range(int64_t extent, int64_t start, int64_t end, int64_t step);
/// Sizes of the parts of a Split along an axis of this extent. `sizes` may be empty.
std::vector<int64_t> split_sizes(const Node& node, int64_t extent, std::vector<int64_t> sizes);

Extent operator*(const Extent& a, const Extent& b);
Extent operator+(const Extent& a, const Extent& b);
Extent operator-(const Extent& a, const Extent& b);
Extent operator/(const Extent& a, const Extent& b);

}  // namespace quantrain::onnx
