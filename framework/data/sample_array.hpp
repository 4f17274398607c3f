#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "framework/arithmetic/qparams.hpp"
#include "framework/autograd/tensor.hpp"
#include "framework/core/shape.hpp"
#include "framework/data/transforms.hpp"
#include "framework/integer/input_encoding.hpp"

namespace quantrain {

using integer::InputFeatures;

/// One array [N, ...] of a data set: plain floats, or bytes that are codes of a declared range. A
/// cheap handle on immutable data.
class SampleArray {
 public:
  // Copies only: a moved-from array would be empty.
  SampleArray(const SampleArray&) = default;
  SampleArray& operator=(const SampleArray&) = default;

  /// Default range of bytes.
  static constexpr Range kUnitRange{0.0f, 1.0f};

  /// Plain floats. Their batches have no codes, so a quantized network needs encoded() instead, or
  /// QConfig::input_range.
  /// Throws: DataError naming sample and element if a value is NaN or infinite. All functions that
  /// make a SampleArray also throw DataError if there are no values, or the values do not fill the
  /// shape.
  static SampleArray floats(const Shape& shape, std::vector<float> values);
  /// The same without a copy. `owner` keeps the values alive. If owner is null, the caller must
  /// keep them alive as long as anything made from this array is used. The values must not change.
  static SampleArray floats(const Shape& shape,
                            std::span<const float> values,
                            std::shared_ptr<const void> owner);
  /// Bytes that are codes of the range. If it does not contain 0, params() are those of the range
  /// widened to 0. By default, real values are byte / 255. features: offsets and scales that turn
  /// raw values into the values that the codes stand for.   docs/quantization.md (20)
  /// Throws: QuantError if the range is empty, infinite or too far from 0 (integer::input_params), or
  /// features do not have a finite offset and a finite positive scale for each index of the last
  /// axis.
  static SampleArray bytes(const Shape& shape,
                           std::vector<uint8_t> values,
                           Range range = kUnitRange,
                           InputFeatures features = {});
  /// The same without a copy. For `owner`, see floats().
  static SampleArray bytes(const Shape& shape,
                           std::span<const uint8_t> values,
                           std::shared_ptr<const void> owner,
                           Range range = kUnitRange,
                           InputFeatures features = {});
  /// Applies the offsets and scales of features to raw floats x and converts the results z to codes
  /// of the range:
  ///   z = (x - offset[f]) / scale[f]; without features, z = x
  ///   byte = round((z - min) / (max - min) * 255) if the range begins or ends at 0
  /// docs/quantization.md (2), (3), (20)
  /// Throws: QuantError like bytes(); DataError if a value, or its z, is NaN or infinite, or
  /// `outside` refuses values whose z is outside the range.
  static SampleArray encoded(const Shape& shape,
                             std::span<const float> values,
                             Range range,
                             InputFeatures features = {},
                             Outside outside = Outside::kRefuse);

  int64_t size() const { return data_->size; }
  /// Shape of one sample.
  const Shape& shape() const& { return data_->shape; }
  Shape shape() const&& { return data_->shape; }
  bool has_codes() const { return data_->bytes.data() != nullptr; }
  /// range(), params(), features() and saturated() are only for arrays that have codes.
  Range range() const { return data_->range; }
  const QParams& params() const& { return data_->params; }
  QParams params() const&& { return data_->params; }
  /// Empty if there are no features.
  const InputFeatures& features() const&;
  InputFeatures features() const&& { return features(); }
  /// Number of values that got the nearest code because they were more than half a step outside of
  /// the codes' range.
  int64_t saturated() const { return data_->saturated; }
  /// Bytes of sample i. Empty if the array holds floats.
  /// Throws: DataError unless 0 <= i < size().
  std::span<const uint8_t> sample_bytes(int64_t i) const&;
  std::span<const uint8_t> sample_bytes(int64_t i) const&& = delete;

  /// Copies sample i into a view of the same shape: into its bytes if the array has codes, else
  /// into its floats.
  /// Throws: DataError unless 0 <= i < size() and the view has room for the sample.
  void copy(int64_t i, const SampleView& to) const;
  /// Memory for one sample. view() resizes it and returns a view of it.
  struct Scratch {
    std::vector<uint8_t> bytes;
    std::vector<float> floats;
  };
  SampleView view(Scratch& scratch) const;

  /// Floats [B, ...] of the samples with these indices. If the array has codes, the floats carry
  /// them. If edit is not null, edit(i, sample) is called with the batch's copy of sample
  /// indices[i], and may change this copy. tensor() uses only the calling thread.
  /// Throws: DataError if an index is not in [0, size()).
  using Edit = std::function<void(size_t i, const SampleView& sample)>;
  Tensor tensor(std::span<const int64_t> indices, const Edit& edit = nullptr) const;
  /// Floats [B, ...] that carry these bytes as their codes.
  /// Throws: DataError if the bytes do not form whole samples, or the array holds floats.
  Tensor tensor(Buffer<uint8_t> bytes) const;

 private:
  void check_index(int64_t i) const;
  struct Data {
    Shape shape;
    int64_t size = 0;
    std::shared_ptr<const void> owner;  // owns floats or bytes
    std::span<const float> floats;
    std::span<const uint8_t> bytes;
    Range range;
    QParams params;
    std::shared_ptr<const InputFeatures> features;  // null: no features
    int64_t saturated = 0;
  };
  explicit SampleArray(Data data) : data_(std::make_shared<const Data>(std::move(data))) {}
  static Data shaped(const Shape& shape, size_t count, const char* what);
  SampleView view(std::span<uint8_t> bytes, std::span<float> floats) const;
  Shape batch_shape(int64_t n) const;

  std::shared_ptr<const Data> data_;
};

}  // namespace quantrain
