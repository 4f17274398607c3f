#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/arithmetic/qparams.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// Images with their labels.
struct Batch {
  Tensor images;                ///< [B, H, W, C], real values
  std::vector<int32_t> labels;  ///< [B]
  std::vector<uint8_t> bytes;   ///< [B, H, W, C]: the same images as the 8-bit codes of the input

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

enum class Split { kTrain, kTest };

/// Labelled images held as bytes; a cheap handle on data that never change. Real values are byte /
/// 255, or what the bytes mean as codes of the range that the data were declared in.
class Dataset {
 public:
  /// Shapes: pixels [N, H, W, C], labels [N] in [0, classes).
  /// Throws: DataError if there is nothing in it, counts do not match or a label is out of range.
  Dataset(const Shape& shape,
          std::vector<uint8_t> pixels,
          std::vector<int32_t> labels,
          int64_t classes);

  /// Real values become the 8-bit codes of their declared range: byte = round((x - min) / (max -
  /// min) * 255) where the range begins or ends at 0; the range is widened to contain 0.
  /// docs/quantization.md (2), (3)
  /// Throws: DataError also if a value is NaN or outside the range, or the range is empty or
  /// infinite.
  static Dataset from_floats(const Shape& shape,
                             std::span<const float> values,
                             std::vector<int32_t> labels,
                             int64_t classes,
                             Range range = {0.0f, 1.0f});

  /// Images [N, H, W] or [N, H, W, C] and labels [N] of two IDX files.
  /// Throws: DataError also as read_idx_u8.
  static Dataset from_idx(const std::string& images_path,
                          const std::string& labels_path,
                          int64_t classes);
  /// A folder with the files of MNIST (train-images-idx3-ubyte and so on), plain or with .gz
  /// behind: 10 classes.
  /// Throws: DataError also if folder or file is missing.
  static Dataset mnist(const std::string& folder, Split split);

  int64_t size() const { return size_; }
  int64_t classes() const { return data_->classes; }
  /// [H, W, C].
  const Shape& image_shape() const { return data_->image_shape; }
  /// Real values of the bytes 0 and 255, before widening.
  Range range() const { return data_->range; }
  /// The byte that means the real value 0.
  uint8_t zero_byte() const;
  /// Bytes of image i, [H, W, C]. Throws: DataError unless 0 <= i < size().
  std::span<const uint8_t> image(int64_t i) const;
  /// Throws: DataError unless 0 <= i < size().
  int32_t label(int64_t i) const;

  /// The first n. Throws: DataError unless 1 <= n <= size().
  Dataset first(int64_t n) const;
  /// Images [begin, end). Throws: DataError unless 0 <= begin < end <= size().
  Batch batch(int64_t begin, int64_t end) const;
  /// Real values [B, H, W, C] of the bytes of B images.
  Tensor to_tensor(std::span<const uint8_t> bytes) const;

 private:
  struct Data {
    Shape image_shape;
    std::vector<uint8_t> pixels;
    std::vector<int32_t> labels;
    int64_t classes;
    Range range{0.0f, 1.0f};
  };
  Dataset(const Shape& shape,
          std::vector<uint8_t> pixels,
          std::vector<int32_t> labels,
          int64_t classes,
          Range range);

  void check_index(int64_t i) const;

  std::shared_ptr<const Data> data_;
  int64_t size_;
};

}  // namespace quantrain
