#include "framework/data/dataset.hpp"

#include <algorithm>
#include <filesystem>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/error.hpp"
#include "framework/data/idx.hpp"
#include "framework/kernels/dispatch.hpp"

namespace quantrain {
namespace {

constexpr const char* kWhere = "dataset";
constexpr Range kPixelRange{0.0f, 1.0f};

ScaleZero codes_of(Range range) { return choose_params(range, QType{8}, QScheme::kAffine, kWhere); }

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
    : Dataset(shape, std::move(pixels), std::move(labels), classes, kPixelRange) {}

Dataset::Dataset(const Shape& shape,
                 std::vector<uint8_t> pixels,
                 std::vector<int32_t> labels,
                 int64_t classes,
                 Range range) {
  if (shape.rank() != 4)
    throw DataError(kWhere, "images have shape ", shape, ", expected [N, H, W, C]");
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
      Shape{shape[1], shape[2], shape[3]}, std::move(pixels), std::move(labels), classes, range});
}

Dataset Dataset::from_floats(const Shape& shape,
                             std::span<const float> values,
                             std::vector<int32_t> labels,
                             int64_t classes,
                             Range range) {
  if (!(range.min < range.max))
    throw DataError(kWhere, "the range [", range.min, ", ", range.max, "] is empty");
  check_count("values", values.size(), shape);
  const ScaleZero codes = codes_of(range);
  std::vector<uint8_t> pixels(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] >= range.min && values[i] <= range.max)) {
      throw DataError(kWhere,
                      "value ",
                      values[i],
                      " at ",
                      i,
                      " is outside the declared range [",
                      range.min,
                      ", ",
                      range.max,
                      "]");
    }
    pixels[i] = static_cast<uint8_t>(quantize(values[i], codes.scale, codes.zero_point, 0, 255));
  }
  return {shape, std::move(pixels), std::move(labels), classes, range};
}

Dataset Dataset::from_idx(const std::string& images_path,
                          const std::string& labels_path,
                          int64_t classes) {
  IdxArray images = read_idx_u8(images_path);
  const IdxArray labels = read_idx_u8(labels_path);
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

Dataset Dataset::mnist(const std::string& folder, Split split) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    throw DataError(kWhere, folder, ": is not a folder");
  const std::string prefix = split == Split::kTrain ? "train" : "t10k";
  const std::string images = find_file(folder, prefix + "-images-idx3-ubyte");
  return from_idx(images, find_file(folder, prefix + "-labels-idx1-ubyte"), 10);
}

void Dataset::check_index(int64_t i) const {
  if (i < 0 || i >= size_) throw DataError(kWhere, "no image ", i, " among ", size_);
}

uint8_t Dataset::zero_byte() const { return static_cast<uint8_t>(codes_of(range()).zero_point); }

std::span<const uint8_t> Dataset::image(int64_t i) const {
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
  Batch batch;
  const auto pixels = static_cast<std::ptrdiff_t>(image_shape().elements());
  batch.bytes.assign(data_->pixels.begin() + begin * pixels, data_->pixels.begin() + end * pixels);
  batch.labels.assign(data_->labels.begin() + begin, data_->labels.begin() + end);
  batch.images = to_tensor(batch.bytes);
  return batch;
}

Tensor Dataset::to_tensor(std::span<const uint8_t> bytes) const {
  const Shape& s = image_shape();
  const auto n = static_cast<int64_t>(bytes.size());
  Tensor images = Tensor::empty({n / s.elements(), s[0], s[1], s[2]});
  check_count("bytes", bytes.size(), images.shape());
  float* const y = images.mutable_data();
  if (range() == kPixelRange) {
    // The kernel itself, in this thread: a loader's thread takes no part in the loops of the one
    // that trains.
    kernels::float_table().bytes_f32(n, bytes.data(), y);
  } else {
    const ScaleZero codes = codes_of(range());
    std::transform(bytes.begin(), bytes.end(), y, [&](uint8_t code) {
      return dequantize(code, codes.scale, codes.zero_point);
    });
  }
  return images;
}

}  // namespace quantrain
