#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/data/tensor_dataset.hpp"

namespace quantrain {

enum class Split { kTrain, kTest };

/// Labelled images, or rows of any shape, held as bytes: what a classifier of one input takes.
/// TensorDataset holds what else there is. A cheap handle on data that never change.
/// Real values are byte / 255, or what the bytes mean as codes of the range that the data were
/// declared in. A batch's images carry bytes, range and features: nothing else has to repeat them.
class Dataset : public BatchSource {
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
  /// Throws: DataError also if a value is NaN, or outside the range, which is [0, 1] unless
  /// declared, and that is refused; QuantError if the range is empty or infinite, or features are
  /// not as many as the last extent, finite, and of positive scale.
  static Dataset from_floats(const Shape& shape,
                             std::span<const float> values,
                             std::vector<int32_t> labels,
                             int64_t classes,
                             Range range = {0.0f, 1.0f},
                             InputFeatures features = {},
                             Outside outside = Outside::kRefuse);

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

  int64_t size() const { return data_.size(); }
  int64_t classes() const { return data_.classes(); }
  /// Of one image, [H, W, C], or of one row.
  const Shape& image_shape() const& { return images().shape(); }
  Shape image_shape() const&& { return images().shape(); }
  /// Real values of the bytes 0 and 255, before widening.
  Range range() const { return images().range(); }
  /// Empty: none.
  const InputFeatures& features() const& { return images().features(); }
  InputFeatures features() const&& { return images().features(); }
  /// The byte that means the real value 0.
  uint8_t zero_byte() const { return static_cast<uint8_t>(images().params().zero_point[0]); }
  /// Bytes of image i. Throws: DataError unless 0 <= i < size().
  std::span<const uint8_t> image(int64_t i) const&;
  std::span<const uint8_t> image(int64_t i) const&& = delete;
  /// Throws: DataError unless 0 <= i < size().
  int32_t label(int64_t i) const;
  /// Of all images, in their order.
  std::vector<int32_t> labels() const { return data_.labels(); }

  /// The first n. Throws: DataError unless 1 <= n <= size().
  Dataset first(int64_t n) const;
  /// These images, in this order: a part that split() chose. Shares the data.
  /// Throws: DataError if there is none, or unless each is in [0, size()).
  Dataset subset(std::span<const int64_t> indices) const;
  /// Images [begin, end). Throws: DataError unless 0 <= begin < end <= size().
  Batch batch(int64_t begin, int64_t end) const;
  /// Floats [B, ...] of the bytes of B images, which they carry; made in this thread alone.
  Tensor to_tensor(Buffer<uint8_t> bytes) const;
  Tensor to_tensor(std::span<const uint8_t> bytes) const;

  std::optional<int64_t> samples() const override { return size(); }
  Reader read(const Pass& pass) const override { return data_.read(pass); }

 private:
  explicit Dataset(TensorDataset data) : data_(std::move(data)) {}
  const SampleArray& images() const& { return data_.inputs()[0]; }
  void check_index(int64_t i) const;

  TensorDataset data_;
};

}  // namespace quantrain
