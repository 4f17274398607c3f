#include "framework/data/sample_array.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/data/dataset_error.hpp"
#include "framework/integer/saturation.hpp"

namespace quantrain {
namespace {

template <class T>
std::pair<std::span<const T>, std::shared_ptr<const void>> kept(std::vector<T> values) {
  auto owner = std::make_shared<const std::vector<T>>(std::move(values));
  const std::span<const T> all(*owner);
  return {all, std::move(owner)};
}

std::shared_ptr<const InputFeatures> shared_features(InputFeatures features) {
  return features.empty() ? nullptr : std::make_shared<const InputFeatures>(std::move(features));
}

void check_finite(std::span<const float> values,
                  int64_t elements,
                  const InputFeatures& features = {}) {
  for (size_t i = 0; i < values.size(); ++i) {
    const float z = integer::feature_value(values, i, features);
    if (std::isfinite(z)) continue;
    const auto at = static_cast<int64_t>(i);
    throw DataError(
        kDataset,
        "value ",
        values[i],
        " of sample ",
        at / elements,
        ", element ",
        at % elements,
        std::isfinite(values[i]) ? " overflows after the feature's offset and scale" : "",
        ": leave the sample out, or replace the value");
  }
}

// Throws for the first value that is NaN or outside the range.
void check_range(const Shape& shape,
                 std::span<const float> values,
                 Range range,
                 const InputFeatures& features) {
  const int64_t elements = shape.elements() / shape[0];
  for (size_t i = 0; i < values.size(); ++i) {
    const float z = integer::feature_value(values, i, features);
    if (z >= range.min && z <= range.max) continue;
    if (std::isnan(z)) check_finite(values, elements, features);
    const auto row = static_cast<int64_t>(i) / elements;
    TextStream seen;
    if (!features.empty())
      seen << ", which is " << z << " after the offset and scale of feature "
           << i % features.scale.size() << ",";
    throw DataError(kDataset,
                    "value ",
                    values[i],
                    " at ",
                    i,
                    " (sample ",
                    row,
                    ")",
                    seen.str(),
                    " is outside the range [",
                    range.min,
                    ", ",
                    range.max,
                    "]: declare the range of the values; if columns differ in magnitude or have "
                    "spikes, declare the features from fit_percentiles() and the range from "
                    "percentile_range(), and pass Outside::kSaturate");
  }
}

}  // namespace

SampleArray::Data SampleArray::shaped(const Shape& shape, size_t count, const char* what) {
  if (shape.rank() < 1)
    throw DataError(kDataset, "samples have shape ", shape, ", expected [N, ...]");
  if (static_cast<int64_t>(count) != shape.elements())
    throw DataError(kDataset, count, ' ', what, " do not fill shape ", shape);
  if (shape.elements() == 0) throw DataError(kDataset, "is empty: samples have shape ", shape);
  Data data;
  data.shape = Shape(std::span(shape.begin() + 1, shape.end()));
  data.size = shape[0];
  return data;
}

SampleArray SampleArray::floats(const Shape& shape, std::vector<float> values) {
  auto [all, owner] = kept(std::move(values));
  return floats(shape, all, std::move(owner));
}

SampleArray SampleArray::floats(const Shape& shape,
                                std::span<const float> values,
                                std::shared_ptr<const void> owner) {
  Data data = shaped(shape, values.size(), "values");
  check_finite(values, data.shape.elements());
  data.owner = std::move(owner);
  data.floats = values;
  return SampleArray(std::move(data));
}

SampleArray SampleArray::bytes(const Shape& shape,
                               std::vector<uint8_t> values,
                               Range range,
                               InputFeatures features) {
  auto [all, owner] = kept(std::move(values));
  return bytes(shape, all, std::move(owner), range, std::move(features));
}

SampleArray SampleArray::bytes(const Shape& shape,
                               std::span<const uint8_t> values,
                               std::shared_ptr<const void> owner,
                               Range range,
                               InputFeatures features) {
  const DefaultRounding rounding;
  Data data = shaped(shape, values.size(), "bytes");
  data.params = integer::input_params(range, kDataset);
  validate(features, shape.back(), kDataset);
  data.owner = std::move(owner);
  data.bytes = values;
  data.range = range;
  data.features = shared_features(std::move(features));
  return SampleArray(std::move(data));
}

SampleArray SampleArray::encoded(const Shape& shape,
                                 std::span<const float> values,
                                 Range range,
                                 InputFeatures features,
                                 Outside outside) {
  const DefaultRounding rounding;
  const QParams params = integer::input_params(range, kDataset);
  Data data = shaped(shape, values.size(), "values");
  validate(features, shape.back(), kDataset);
  if (outside == Outside::kRefuse)
    check_range(shape, values, range, features);  // refuses NaN and infinity, too
  else
    check_finite(values, data.shape.elements(), features);
  std::vector<uint8_t> codes(values.size());
  data.saturated = integer::encode_input(values, params, features, codes, kDataset);
  const integer::EncodedValues encoded{
      .values = values, .outside = data.saturated, .samples = data.size, .columns = shape.back()};
  integer::check_outside(outside, encoded, params, features, kDataset, "the samples");
  auto [all, owner] = kept(std::move(codes));
  data.owner = std::move(owner);
  data.bytes = all;
  data.range = range;
  data.params = params;
  data.features = shared_features(std::move(features));
  return SampleArray(std::move(data));
}

const InputFeatures& SampleArray::features() const& {
  static const InputFeatures none;
  return data_->features == nullptr ? none : *data_->features;
}

void SampleArray::check_index(int64_t i) const {
  if (i < 0 || i >= size())
    throw DataError(kDataset, "sample ", i, " is outside [0, ", size(), ')');
}

std::span<const uint8_t> SampleArray::sample_bytes(int64_t i) const& {
  check_index(i);
  if (!has_codes()) return {};
  const auto elements = static_cast<size_t>(shape().elements());
  return data_->bytes.subspan(static_cast<size_t>(i) * elements, elements);
}

void SampleArray::copy(int64_t i, const SampleView& to) const {
  check_index(i);
  const auto elements = static_cast<size_t>(shape().elements());
  const size_t room = has_codes() ? to.pixels.size() : to.floats.size();
  if (room < elements)
    throw DataError(kDataset, "a view of ", room, " elements has no room for a sample ", shape());
  const size_t first = static_cast<size_t>(i) * elements;
  if (has_codes()) {
    std::copy_n(data_->bytes.data() + first, elements, to.pixels.data());
  } else {
    std::copy_n(data_->floats.data() + first, elements, to.floats.data());
  }
}

SampleView SampleArray::view(std::span<uint8_t> bytes, std::span<float> floats) const {
  SampleView view{.pixels = bytes, .shape = shape(), .floats = floats};
  if (has_codes()) {
    view.zero = static_cast<uint8_t>(data_->params.zero_point[0]);
    view.scale = data_->params.scale[0];
  }
  return view;
}

SampleView SampleArray::view(Scratch& scratch) const {
  const auto elements = static_cast<size_t>(shape().elements());
  if (has_codes()) {
    scratch.bytes.resize(elements);
  } else {
    scratch.floats.resize(elements);
  }
  return view(scratch.bytes, scratch.floats);
}

Shape SampleArray::batch_shape(int64_t n) const {
  std::vector<int64_t> extents{n};
  extents.insert(extents.end(), shape().begin(), shape().end());
  return Shape(extents);
}

Tensor SampleArray::tensor(std::span<const int64_t> indices, const Edit& edit) const {
  const auto n = static_cast<int64_t>(indices.size());
  const int64_t elements = shape().elements();
  const auto count = static_cast<size_t>(elements);
  const auto take = [&](size_t i, std::span<uint8_t> bytes, std::span<float> floats) {
    const SampleView sample = view(bytes, floats);
    copy(indices[i], sample);
    if (edit) edit(i, sample);
  };
  if (has_codes()) {
    Buffer<uint8_t> bytes(n * elements);
    for (size_t i = 0; i < indices.size(); ++i) take(i, {bytes.data() + i * count, count}, {});
    return tensor(std::move(bytes));
  }
  Tensor result = Tensor::empty(batch_shape(n));
  float* const floats = result.mutable_data();
  for (size_t i = 0; i < indices.size(); ++i) take(i, {}, {floats + i * count, count});
  return result;
}

Tensor SampleArray::tensor(Buffer<uint8_t> bytes) const {
  if (!has_codes()) throw DataError(kDataset, "an array of floats cannot make a tensor from bytes");
  const Shape all = batch_shape(bytes.size() / shape().elements());
  if (all.elements() != bytes.size())
    throw DataError(kDataset, bytes.size(), " bytes do not fill shape ", all);
  auto codes = std::make_shared<Codes>();
  codes->bytes = std::move(bytes);
  codes->params = data_->params;
  codes->features = data_->features;
  return Tensor::decoded(all, std::move(codes));
}

}  // namespace quantrain
