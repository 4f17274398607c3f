#include "framework/data/cifar.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"

namespace quantrain {
namespace {

constexpr const char* kCifar = "cifar";
constexpr int64_t kSide = 32;
constexpr int64_t kChannels = 3;
constexpr int64_t kPlane = kSide * kSide;
constexpr int64_t kRecord = 1 + kChannels * kPlane;  // a label, then red, green and blue
constexpr int64_t kMostImages = 10'000;              // in one file
constexpr int64_t kClasses = 10;

void append(const std::string& path, std::vector<uint8_t>& pixels, std::vector<int32_t>& labels) {
  InputFile file(path);
  const int64_t bytes = file.left();
  if (bytes == 0 || bytes % kRecord != 0 || bytes / kRecord > kMostImages) {
    throw DataError(kCifar,
                    path,
                    ": has ",
                    bytes,
                    " bytes, expected 1 to ",
                    kMostImages,
                    " images of ",
                    kRecord,
                    " bytes each");
  }
  std::vector<uint8_t> record(static_cast<size_t>(kRecord));
  for (int64_t image = 0; image < bytes / kRecord; ++image) {
    if (file.read(record) != record.size())
      throw DataError(kCifar, path, ": ends in image ", image);
    if (record[0] >= kClasses) {
      throw DataError(
          kCifar, path, ": image ", image, " has label ", int{record[0]}, ", expected 0 to 9");
    }
    labels.push_back(record[0]);
    for (int64_t i = 0; i < kPlane; ++i) {
      for (int64_t c = 0; c < kChannels; ++c)
        pixels.push_back(record[static_cast<size_t>(1 + c * kPlane + i)]);
    }
  }
}

}  // namespace

Dataset read_cifar10(const std::string& folder, Split split) {
  std::vector<uint8_t> pixels;
  std::vector<int32_t> labels;
  if (split == Split::kTest) {
    append(folder + "/test_batch.bin", pixels, labels);
  } else {
    for (int part = 1; part <= 5; ++part)
      append(folder + "/data_batch_" + std::to_string(part) + ".bin", pixels, labels);
  }
  const auto images = static_cast<int64_t>(labels.size());
  return Dataset({images, kSide, kSide, kChannels}, std::move(pixels), std::move(labels), kClasses);
}

}  // namespace quantrain
