#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/arithmetic/qparams.hpp"
#include "framework/autograd/tensor.hpp"
#include "framework/integer/input_encoding.hpp"

namespace quantrain {

using integer::InputFeatures;

/// Images with their labels.
struct Batch {
  Tensor images;                ///< [B, ...]: floats, with the codes they are made from
  std::vector<int32_t> labels;  ///< [B]

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  /// [B, ...]: the images as the 8-bit codes of the input; valid as long as the images.
  /// Throws: DataError if the images were written since they were made, or never had codes.
  std::span<const uint8_t> bytes() const&;
  std::span<const uint8_t> bytes() const&& = delete;
};

enum class Split { kTrain, kTest };

/// Labelled images, or rows of any shape, held as bytes; a cheap handle on data that never change.
/// Real values are byte / 255, or what the bytes mean as codes of the range that the data were
/// declared in. A batch's images carry bytes, range and features: nothing else has to repeat them.
class Dataset {
 public:
  // No moves: what was moved from is a data set still.
  Dataset(const Dataset&) = default;
  Dataset& operator=(const Dataset&) = default;
  /// Shapes: pixels [N, ...], images [N, H, W, C]; labels [N] in [0, classes).
  /// Throws: DataError if there is nothing in it, counts do not match or a label is out of range.
  Dataset(const Shape& shape,
          std::vector<uint8_t> pixels,
          std::vector<int32_t> labels,
          int64_t classes);

  /// Real values become the 8-bit codes of their declared range: byte = round((x - min) / (max -
  /// min) * 255) where the range begins or ends at 0; the range is widened to contain 0.
  /// docs/quantization.md (2), (3). Where there are features, values are raw: z = (x - offset[f]) /
  /// scale[f] along the last axis takes their place, in the range too, and is what a network sees.
  /// fit_mean_std() and fit_min_max() find offsets and scales.   docs/quantization.md (20)
  /// Throws: DataError also if a value is NaN or outside the range, which is [0, 1] unless declared; QuantError if the range is empty
  /// or infinite, or features are not as many as the last extent, finite, and of positive scale.
  static Dataset from_floats(const Shape& shape,
                             std::span<const float> values,
                             std::vector<int32_t> labels,
                             int64_t classes,
                             Range range = {0.0f, 1.0f},
                             InputFeatures features = {});

  /// Images [N, H, W] or [N, H, W, C] and labels [N] of two IDX files; limit: read_idx_u8's, for
  /// each of them.
  /// Throws: DataError also as read_idx_u8.
  static Dataset from_idx(const std::string& images_path,
                          const std::string& labels_path,
                          int64_t classes,
                          std::optional<int64_t> limit = {});
  /// A folder with the files of MNIST (train-images-idx3-ubyte and so on), plain or with .gz
  /// behind: 10 classes.
  /// Throws: DataError also if folder or file is missing.
  static Dataset mnist(const std::string& folder, Split split, std::optional<int64_t> limit = {});

  int64_t size() const { return size_; }
  int64_t classes() const { return data_->classes; }
  /// Of one image, [H, W, C], or of one row.
  const Shape& image_shape() const& { return data_->image_shape; }
  Shape image_shape() const&& { return data_->image_shape; }
  /// Real values of the bytes 0 and 255, before widening.
  Range range() const { return data_->range; }
  /// Empty: none.
  const InputFeatures& features() const&;
  InputFeatures features() const&& { return features(); }
  /// The byte that means the real value 0.
  uint8_t zero_byte() const;
  /// Bytes of image i. Throws: DataError unless 0 <= i < size().
  std::span<const uint8_t> image(int64_t i) const&;
  std::span<const uint8_t> image(int64_t i) const&& = delete;
  /// Throws: DataError unless 0 <= i < size().
  int32_t label(int64_t i) const;

  /// The first n. Throws: DataError unless 1 <= n <= size().
  Dataset first(int64_t n) const;
  /// Images [begin, end). Throws: DataError unless 0 <= begin < end <= size().
  Batch batch(int64_t begin, int64_t end) const;
  /// Floats [B, ...] of the bytes of B images, which they carry; made in this thread alone.
  Tensor to_tensor(Buffer<uint8_t> bytes) const;
  Tensor to_tensor(std::span<const uint8_t> bytes) const;

 private:
  struct Data {
    Shape image_shape;
    std::vector<uint8_t> pixels;
    std::vector<int32_t> labels;
    int64_t classes;
    Range range;
    QParams params;                                 // of the bytes
    std::shared_ptr<const InputFeatures> features;  // null: none
  };
  Dataset(const Shape& shape,
          std::vector<uint8_t> pixels,
          std::vector<int32_t> labels,
          int64_t classes,
          Range range,
          InputFeatures features);

  void check_index(int64_t i) const;

  std::shared_ptr<const Data> data_;
  int64_t size_;
};

}  // namespace quantrain
