#include "layers/reshape.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "framework/autograd/ops/reshape.hpp"
#include "framework/core/error.hpp"
#include "framework/core/text_stream.hpp"

namespace quantrain {
namespace {

std::string text(const std::vector<int64_t>& extents) {
  TextStream stream;
  const char* separator = "[";
  for (const int64_t extent : extents) {
    stream << separator << extent;
    separator = ", ";
  }
  stream << (extents.empty() ? "[]" : "]");
  return stream.str();
}

}  // namespace

Reshape::Reshape(std::vector<int64_t> sample) : sample_(std::move(sample)) {
  const bool positive =
      std::all_of(sample_.begin(), sample_.end(), [](int64_t e) { return e > 0 || e == -1; });
  if (!positive || std::count(sample_.begin(), sample_.end(), -1) > 1) {
    throw ShapeError(
        "Reshape", "expected positive extents and at most one -1, got ", text(sample_));
  }
  std::vector<int64_t> known{1};  // a batch of one
  for (const int64_t extent : sample_) known.push_back(std::max<int64_t>(extent, 1));
  static_cast<void>(Shape(known));
}

Tensor Reshape::forward(const Tensor& x) {
  if (x.rank() < 1) throw ShapeError(where(), "takes a batch [N, ...]: x ", x.shape());
  const int64_t elements = Shape(std::span(x.shape().begin() + 1, x.shape().end())).elements();
  std::vector<int64_t> extents{-1};  // the batch, computed from the number of elements
  int64_t known = 1;
  for (const int64_t extent : sample_) known *= std::max<int64_t>(extent, 1);
  const bool open = std::count(sample_.begin(), sample_.end(), -1) > 0;
  if (elements % known != 0 || (!open && elements != known)) {
    throw ShapeError(where(),
                     "a sample of ",
                     elements,
                     " elements does not fill ",
                     text(sample_),
                     ": x ",
                     x.shape());
  }
  for (const int64_t extent : sample_) extents.push_back(extent == -1 ? elements / known : extent);
  // If samples are empty, the number of elements does not determine the batch.
  if (elements == 0) extents[0] = x.dim(0);
  return reshape(x, extents);
}

}  // namespace quantrain
