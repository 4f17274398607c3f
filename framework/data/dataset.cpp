#include "framework/data/dataset.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/data/idx.hpp"

namespace quantrain {
namespace {

constexpr const char* kWhere = "dataset";
constexpr Range kPixelRange{0.0f, 1.0f};

void check_count(const char* what, size_t count, const Shape& shape) {
  if (static_cast<int64_t>(count) != shape.elements()) {
    throw DataError(kWhere, count, ' ', what, " do not fill shape ", shape);
  }
}

std::string find_file(const std::string& folder, const std::string& name) {
  for (const char* suffix : {"", ".gz"}) {
    const std::filesystem::path path = std::filesystem::path(folder) / (name + suffix);
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return path.string();
  }
  throw DataError(kWhere, folder, ": has neither ", name, " nor ", name, ".gz");
}

}  // namespace

Dataset::Dataset(const Shape& shape,
                 std::vector<uint8_t> pixels,
                 std::vector<int32_t> labels,
                 int64_t classes)
    : Dataset(shape, std::move(pixels), std::move(labels), classes, kPixelRange, {}) {}

Dataset::Dataset(const Shape& shape,
                 std::vector<uint8_t> pixels,
                 std::vector<int32_t> labels,
                 int64_t classes,
                 Range range,
                 InputFeatures features) {
  if (shape.rank() < 2)
    throw DataError(kWhere, "images have shape ", shape, ", expected [N, H, W, C] or rows [N, F]");
  if (shape.elements() == 0) throw DataError(kWhere, "is empty: images have shape ", shape);
  check_count("bytes", pixels.size(), shape);
  if (static_cast<int64_t>(labels.size()) != shape[0]) {
    throw DataError(kWhere, shape[0], " images, but ", labels.size(), " labels");
  }
  if (classes < 1) throw DataError(kWhere, "number of classes is ", classes);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= classes) {
      throw DataError(
          kWhere, "label ", labels[i], " of image ", i, " is outside [0, ", classes, ")");
    }
  }
  size_ = shape[0];
  data_ = std::make_shared<const Data>(Data{
      .image_shape = Shape(std::span(shape.begin() + 1, shape.end())),
      .pixels = std::move(pixels),
      .labels = std::move(labels),
      .classes = classes,
      .range = range,
      .params = integer::input_params(range, kWhere),
      .features =
          features.empty() ? nullptr : std::make_shared<const InputFeatures>(std::move(features))});
}

Dataset Dataset::from_floats(const Shape& shape,
                             std::span<const float> values,
                             std::vector<int32_t> labels,
                             int64_t classes,
                             Range range,
                             InputFeatures features) {
  const DefaultRounding rounding;
  const QParams params = integer::input_params(range, kWhere);
  if (shape.rank() < 2)
    throw DataError(kWhere, "samples have shape ", shape, ", expected [N, ...]");
  validate(features, shape.back(), kWhere);
  check_count("values", values.size(), shape);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t f = features.empty() ? 0 : i % features.scale.size();
    const float z = features.empty()
                        ? values[i]
                        : integer::feature_value(values[i], features.offset[f], features.scale[f]);
    if (z >= range.min && z <= range.max) continue;
    const auto row = static_cast<int64_t>(i) / (shape.elements() / shape[0]);
    std::ostringstream seen;
    if (!features.empty()) seen << ", of feature " << f << " " << z << " after offset and scale,";
    throw DataError(kWhere,
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
                    "]: declare the range of the values, or for columns that differ the features "
                    "of fit_min_max() or fit_mean_std() with their feature_range()");
  }
  std::vector<uint8_t> pixels(values.size());
  integer::encode_input(values, params, features, pixels, kWhere);
  return {shape, std::move(pixels), std::move(labels), classes, range, std::move(features)};
}

Dataset Dataset::from_idx(const std::string& images_path,
                          const std::string& labels_path,
                          int64_t classes,
                          std::optional<int64_t> limit) {
  IdxArray images = read_idx_u8(images_path, limit);
  const IdxArray labels = read_idx_u8(labels_path, limit);
  if (images.shape.rank() < 3 || images.shape.rank() > 4) {
    throw DataError(kWhere,
                    images_path,
                    ": images have shape ",
                    images.shape,
                    ", expected [N, H, W] or [N, H, W, C]");
  }
  if (labels.shape.rank() != 1) {
    throw DataError(kWhere, labels_path, ": labels have shape ", labels.shape, ", expected [N]");
  }
  const Shape& s = images.shape;
  try {
    return {{s[0], s[1], s[2], s.rank() == 4 ? s[3] : 1},
            std::move(images.bytes),
            {labels.bytes.begin(), labels.bytes.end()},
            classes};
  } catch (const DataError& error) {
    throw DataError("dataset", images_path, ", ", labels_path, ": ", error.what());
  }
}

Dataset Dataset::mnist(const std::string& folder, Split split, std::optional<int64_t> limit) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    throw DataError(kWhere, folder, ": is not a folder");
  const std::string prefix = split == Split::kTrain ? "train" : "t10k";
  const std::string images = find_file(folder, prefix + "-images-idx3-ubyte");
  return from_idx(images, find_file(folder, prefix + "-labels-idx1-ubyte"), 10, limit);
}

void Dataset::check_index(int64_t i) const {
  if (i < 0 || i >= size_) throw DataError(kWhere, "no image ", i, " among ", size_);
}

uint8_t Dataset::zero_byte() const { return static_cast<uint8_t>(data_->params.zero_point[0]); }

const InputFeatures& Dataset::features() const& {
  static const InputFeatures none;
  return data_->features == nullptr ? none : *data_->features;
}

std::span<const uint8_t> Dataset::image(int64_t i) const& {
  check_index(i);
  const auto pixels = static_cast<size_t>(image_shape().elements());
  return std::span(data_->pixels).subspan(static_cast<size_t>(i) * pixels, pixels);
}

int32_t Dataset::label(int64_t i) const {
  check_index(i);
  return data_->labels[static_cast<size_t>(i)];
}

Dataset Dataset::first(int64_t n) const {
  if (n < 1 || n > size_)
    throw DataError(kWhere, "cannot take the first ", n, " of ", size_, " images");
  Dataset result = *this;
  result.size_ = n;
  return result;
}

Batch Dataset::batch(int64_t begin, int64_t end) const {
  if (begin < 0 || begin >= end || end > size_) {
    throw DataError(kWhere, "no images [", begin, ", ", end, ") among ", size_);
  }
  const auto pixels = static_cast<size_t>(image_shape().elements());
  const std::span all(data_->pixels);
  Batch batch;
  batch.images = to_tensor(
      all.subspan(static_cast<size_t>(begin) * pixels, static_cast<size_t>(end - begin) * pixels));
  batch.labels.assign(data_->labels.begin() + begin, data_->labels.begin() + end);
  return batch;
}

Tensor Dataset::to_tensor(std::span<const uint8_t> bytes) const {
  Buffer<uint8_t> own(static_cast<int64_t>(bytes.size()));
  std::copy(bytes.begin(), bytes.end(), own.begin());
  return to_tensor(std::move(own));
}

Tensor Dataset::to_tensor(Buffer<uint8_t> bytes) const {
  const DefaultRounding rounding;
  const int64_t n = bytes.size() / image_shape().elements();
  std::vector<int64_t> extents{n};
  extents.insert(extents.end(), image_shape().begin(), image_shape().end());
  const Shape shape(extents);
  check_count("bytes", static_cast<size_t>(bytes.size()), shape);
  auto codes = std::make_shared<Codes>();
  codes->bytes = std::move(bytes);
  codes->params = data_->params;
  codes->features = data_->features;
  return Tensor::decoded(shape, std::move(codes));
}

std::span<const uint8_t> Batch::bytes() const& {
  const std::shared_ptr<const Codes> codes = images.defined() ? images.source_codes() : nullptr;
  if (codes == nullptr) {
    throw DataError("batch",
                    "the images have no codes: they were written or moved away since a data set "
                    "made them, or it never did; take the bytes first, or make new ones with "
                    "IntegerModel::quantize_input");
  }
  return {codes->u8(), static_cast<size_t>(codes->bytes.size())};
}

}  // namespace quantrain
