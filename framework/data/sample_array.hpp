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

/// What becomes of values outside of the declared range.
enum class Outside {
  kRefuse,    ///< an error that names the first
  kSaturate,  ///< the nearest code, as in a deployed program; counted
};

/// One array of a data set, [N, ...]: plain floats, or bytes that are codes of a declared range. A
/// cheap handle on data that never change.
class SampleArray {
 public:
  /// What bytes mean unless it is said.
  static constexpr Range kUnitRange{0.0f, 1.0f};

  /// Floats as they are; batches of them have no codes. A network that is to be quantized takes
  /// encoded(), or QConfig::input_range.
  /// Throws: DataError naming sample and element if a value is NaN or infinite, if there is none,
  /// or if they do not fill the shape; the last two hold for all functions here.
  static SampleArray floats(const Shape& shape, std::vector<float> values);
  /// Without a copy. owner keeps the values alive; null: the caller does, as long as anything that
  /// was made of this is used. They must not change.
  static SampleArray floats(const Shape& shape,
                            std::span<const float> values,
                            std::shared_ptr<const void> owner);
  /// Bytes that are codes of the range, widened to contain 0: byte / 255 unless declared.
  /// features: what raw values go through before they become such codes.   docs/quantization.md
  /// (20)
  /// Throws: QuantError if the range is empty or infinite, or features are not as many as the last
  /// extent, finite, and of positive scale.
  static SampleArray bytes(const Shape& shape,
                           std::vector<uint8_t> values,
                           Range range = kUnitRange,
                           InputFeatures features = {});
  /// Without a copy, as for floats.
  static SampleArray bytes(const Shape& shape,
                           std::span<const uint8_t> values,
                           std::shared_ptr<const void> owner,
                           Range range = kUnitRange,
                           InputFeatures features = {});
  /// Raw floats as codes of the range, after features:
  ///   byte = round((z - min) / (max - min) * 255), z = (x - offset[f]) / scale[f]
  /// where the range begins or ends at 0.   docs/quantization.md (2), (3), (20)
  /// Throws: QuantError as bytes(); DataError if a value is NaN or infinite, or z is outside the
  /// range and that is refused.
  static SampleArray encoded(const Shape& shape,
                             std::span<const float> values,
                             Range range,
                             InputFeatures features = {},
                             Outside outside = Outside::kRefuse);

  int64_t size() const { return data_->size; }
  /// Of one sample.
  const Shape& shape() const& { return data_->shape; }
  Shape shape() const&& { return data_->shape; }
  bool has_codes() const { return data_->bytes.data() != nullptr; }
  /// The rest is of those that have codes.
  Range range() const { return data_->range; }
  const QParams& params() const& { return data_->params; }
  QParams params() const&& { return data_->params; }
  /// Empty: none.
  const InputFeatures& features() const&;
  InputFeatures features() const&& { return features(); }
  /// How many values lay outside of what the codes represent, and became the nearest.
  int64_t saturated() const { return data_->saturated; }
  /// Bytes of sample i, in [0, size()); none where it holds floats.
  std::span<const uint8_t> sample_bytes(int64_t i) const&;
  std::span<const uint8_t> sample_bytes(int64_t i) const&& = delete;

  /// Copies sample i into the view, which is shaped like it and of the same kind.
  void copy(int64_t i, const SampleView& to) const;
  /// Memory for one sample, uninitialised, and the view of it.
  struct Scratch {
    std::vector<uint8_t> bytes;
    std::vector<float> floats;
  };
  SampleView view(Scratch& scratch) const;

  /// The samples [B, ...] of these numbers, in this thread alone: floats, with the codes they are
  /// made from where there are codes. edit(i, sample) may change the i-th before that.
  using Edit = std::function<void(size_t i, const SampleView& sample)>;
  Tensor tensor(std::span<const int64_t> indices, const Edit& edit = nullptr) const;
  /// Floats [B, ...] that carry these bytes as their codes.
  Tensor tensor(Buffer<uint8_t> bytes) const;

 private:
  struct Data {
    Shape shape;
    int64_t size = 0;
    std::shared_ptr<const void> owner;  // of one of the two
    std::span<const float> floats;
    std::span<const uint8_t> bytes;
    Range range;
    QParams params;
    std::shared_ptr<const InputFeatures> features;  // null: none
    int64_t saturated = 0;
  };
  explicit SampleArray(Data data) : data_(std::make_shared<const Data>(std::move(data))) {}
  static Data shaped(const Shape& shape, size_t count, const char* what);
  SampleView view(std::span<uint8_t> bytes, std::span<float> floats) const;
  Shape batch_shape(int64_t n) const;

  std::shared_ptr<const Data> data_;
};

}  // namespace quantrain
