#include "framework/data/dataset.hpp"

#include <algorithm>

#include "framework/core/error.hpp"
#include "framework/core/path.hpp"
#include "framework/data/dataset_error.hpp"

namespace quantrain {
namespace {

void check_images(const Shape& shape,
                  size_t bytes,
                  std::span<const int32_t> labels,
                  int64_t classes) {
  if (shape.rank() < 2)
    throw DataError(kDataset,
                    "images have shape ",
                    shape,
                    ", expected [N, ...], such as [N, H, W, C] or rows [N, F]");
  if (shape.elements() == 0) throw DataError(kDataset, "is empty: images have shape ", shape);
  if (static_cast<int64_t>(bytes) != shape.elements())
    throw DataError(kDataset, bytes, " bytes do not fill shape ", shape);
  if (static_cast<int64_t>(labels.size()) != shape[0])
    throw DataError(kDataset, shape[0], " images, but ", labels.size(), " labels");
  if (classes < 1)
    throw DataError(kDataset, "number of classes is ", classes, ", expected at least 1");
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= 0 && labels[i] < classes) continue;
    throw DataError(
        kDataset, "label ", labels[i], " of image ", i, " is outside [0, ", classes, ")");
  }
}

std::string find_file(const std::string& folder, const std::string& name) {
  for (const char* suffix : {"", ".gz"}) {
    const std::string path = to_text(to_path(folder) / (name + suffix));
    if (exists(path)) return path;
  }
  throw DataError(kDataset, folder, ": has neither ", name, " nor ", name, ".gz");
}

}  // namespace

Dataset::Dataset(const Shape& shape,
                 std::vector<uint8_t> pixels,
                 std::vector<int32_t> labels,
                 int64_t classes,
                 Range range,
                 InputFeatures features)
    : Dataset(
          (check_images(shape, pixels.size(), labels, classes),
           TensorDataset(SampleArray::bytes(shape, std::move(pixels), range, std::move(features)),
                         Labels{std::move(labels), classes}))) {}

Dataset Dataset::from_floats(const Shape& shape,
                             std::span<const float> values,
                             std::vector<int32_t> labels,
                             int64_t classes,
                             Range range,
                             InputFeatures features,
                             Outside outside) {
  if (shape.rank() < 2)
    throw DataError(kDataset, "samples have shape ", shape, ", expected [N, ...]");
  SampleArray samples = SampleArray::encoded(shape, values, range, std::move(features), outside);
  check_images(shape, values.size(), labels, classes);
  return Dataset(TensorDataset(std::move(samples), Labels{std::move(labels), classes}));
}

Dataset Dataset::from_idx(const std::string& images_path,
                          const std::string& labels_path,
                          int64_t classes,
                          const IdxOptions& options) {
  IdxArray images = read_idx_u8(images_path, options.max_bytes);
  const IdxArray labels = read_idx_u8(labels_path, options.max_bytes);
  if (images.shape.rank() < 3 || images.shape.rank() > 4) {
    throw DataError(kDataset,
                    images_path,
                    ": images have shape ",
                    images.shape,
                    ", expected [N, H, W] or [N, H, W, C]");
  }
  if (labels.shape.rank() != 1) {
    throw DataError(kDataset, labels_path, ": labels have shape ", labels.shape, ", expected [N]");
  }
  const Shape& s = images.shape;
  try {
    const Dataset all({s[0], s[1], s[2], s.rank() == 4 ? s[3] : 1},
                      std::move(images.bytes),
                      {labels.bytes.begin(), labels.bytes.end()},
                      classes);
    return options.samples ? all.first(*options.samples) : all;
  } catch (const DataError& error) {
    throw DataError("dataset", images_path, ", ", labels_path, ": ", error.what());
  }
}

Dataset Dataset::mnist(const std::string& folder, Split split, const IdxOptions& options) {
  if (!is_folder(folder)) throw DataError(kDataset, folder, ": is not a folder");
  const std::string prefix = split == Split::kTrain ? "train" : "t10k";
  const std::string images = find_file(folder, prefix + "-images-idx3-ubyte");
  return from_idx(images, find_file(folder, prefix + "-labels-idx1-ubyte"), 10, options);
}

void Dataset::check_index(int64_t i) const {
  if (i < 0 || i >= size()) throw DataError(kDataset, "image ", i, " is outside [0, ", size(), ")");
}

std::span<const uint8_t> Dataset::image(int64_t i) const& {
  check_index(i);
  return images().sample_bytes(data_.row(i));
}

int32_t Dataset::label(int64_t i) const {
  check_index(i);
  return data_.label(i);
}

Dataset Dataset::first(int64_t n) const {
  if (n < 1 || n > size())
    throw DataError(kDataset, "cannot take the first ", n, " of ", size(), " images");
  return Dataset(data_.first(n));
}

Dataset Dataset::subset(std::span<const int64_t> indices) const {
  return Dataset(data_.subset(indices));
}

Batch Dataset::batch(int64_t begin, int64_t end) const {
  if (begin < 0 || begin >= end || end > size())
    throw DataError(kDataset, "images [", begin, ", ", end, ") are not within [0, ", size(), ")");
  return data_.batch(begin, end);
}

Tensor Dataset::to_tensor(std::span<const uint8_t> bytes) const {
  Buffer<uint8_t> own(static_cast<int64_t>(bytes.size()));
  std::copy(bytes.begin(), bytes.end(), own.begin());
  return to_tensor(std::move(own));
}

Tensor Dataset::to_tensor(Buffer<uint8_t> bytes) const { return images().tensor(std::move(bytes)); }

}  // namespace quantrain
