#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/data/idx.hpp"
#include "framework/data/tensor_dataset.hpp"

namespace quantrain {

enum class Split { kTrain, kTest };

/// Labelled samples for a classifier with one input: images, or samples of any other shape, stored
/// as bytes. A cheap handle on immutable data. The bytes are codes of a declared range. By default,
/// real values are byte / 255. The input of a batch carries its bytes, range and features, so
/// range and features are declared only here. For other data, use TensorDataset.
class Dataset : public BatchSource {
 public:
  // Copies only: a moved-from data set would be empty.
  Dataset(const Dataset&) = default;
  Dataset& operator=(const Dataset&) = default;
  /// The pixels are codes of the range, by default byte / 255. features: offsets and scales that
  /// turn raw values into the values that the codes stand for (see SampleArray::bytes()).
  /// Shapes: pixels [N, ...], for images [N, H, W, C]; labels [N], each in [0, classes).
  /// Throws: DataError if the shape has fewer than two axes, the data set is empty, the number of
  /// pixels or labels does not fit the shape, or a label is out of range; QuantError like
  /// SampleArray::bytes().
  Dataset(const Shape& shape,
          std::vector<uint8_t> pixels,
          std::vector<int32_t> labels,
          int64_t classes,
          Range range = SampleArray::kUnitRange,
          InputFeatures features = {});

  /// Converts real values to 8-bit codes of their declared range, which is widened to contain 0. If
  /// the range begins or ends at 0, byte = round((x - min) / (max - min) * 255). With features,
  /// each value x is replaced by z = (x - offset[f]) / scale[f], where f is the index of x along
  /// the last axis. The range is then a range of z, and the network sees z. fit_percentiles(),
  /// fit_mean_std() and fit_min_max() find offsets and scales, percentile_range() and
  /// feature_range() the range. coverage() says what the range keeps of the values.
  /// docs/quantization.md (2), (3), (20)
  /// Throws: DataError like the constructor; DataError also if a value (with features: its z) is
  /// NaN or infinite, or `outside` refuses values outside the range; QuantError if the range is
  /// empty, infinite or too far from 0 (integer::input_params), or features do not have a finite
  /// offset and a finite positive scale for each index of the last axis.
  static Dataset from_floats(const Shape& shape,
                             std::span<const float> values,
                             std::vector<int32_t> labels,
                             int64_t classes,
                             Range range = {0.0f, 1.0f},
                             InputFeatures features = {},
                             Outside outside = Outside::kRefuse);

  /// Reads images [N, H, W] or [N, H, W, C] and labels [N] from two IDX files.
  /// Throws: DataError like the constructor, read_idx_u8() and first(), or if the images do not
  /// have 3 or 4 axes, or the labels do not have one.
  static Dataset from_idx(const std::string& images_path,
                          const std::string& labels_path,
                          int64_t classes,
                          const IdxOptions& options = {});
  /// Reads one split from a folder with the files of MNIST (train-images-idx3-ubyte and so on),
  /// plain or gzipped (.gz). The data set has 10 classes.
  ///   Dataset::mnist(folder, Split::kTrain, {.samples = 6000})
  /// Throws: DataError like from_idx(), or if the folder or a file is missing.
  static Dataset mnist(const std::string& folder, Split split, const IdxOptions& options = {});

  int64_t size() const { return data_.size(); }
  int64_t classes() const { return data_.classes(); }
  /// Shape of one image, [H, W, C], or of one sample.
  const Shape& image_shape() const& { return images().shape(); }
  Shape image_shape() const&& { return images().shape(); }
  /// The declared range, before it is widened to contain 0.
  Range range() const { return images().range(); }
  /// Empty if there are no features.
  const InputFeatures& features() const& { return images().features(); }
  InputFeatures features() const&& { return images().features(); }
  /// The byte whose real value is 0.
  uint8_t zero_byte() const { return static_cast<uint8_t>(images().params().zero_point[0]); }
  /// Number of values that saturated when from_floats() converted them, in all samples, even if
  /// this data set is a part of them.
  int64_t saturated() const { return images().saturated(); }
  /// Bytes of image i. Throws: DataError unless 0 <= i < size().
  std::span<const uint8_t> image(int64_t i) const&;
  std::span<const uint8_t> image(int64_t i) const&& = delete;
  /// Throws: DataError unless 0 <= i < size().
  int32_t label(int64_t i) const;
  /// Labels of all images, in their order.
  std::vector<int32_t> labels() const { return data_.labels(); }

  /// The first n images. Throws: DataError unless 1 <= n <= size().
  Dataset first(int64_t n) const;
  /// The images with these indices, in this order, for example one part from split_indices().
  /// Shares the data.
  /// Throws: DataError if indices is empty, or an index is not in [0, size()).
  Dataset subset(std::span<const int64_t> indices) const;
  /// Images [begin, end). Throws: DataError unless 0 <= begin < end <= size().
  Batch batch(int64_t begin, int64_t end) const;
  /// Floats [B, ...] of B images, given as bytes. The floats carry the bytes as their codes. Runs
  /// in the calling thread only.
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
