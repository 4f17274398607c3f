// ResNet-8 on images of 32 x 32: CIFAR-10, or a folder in MNIST's format, whose images get a
// border.

#include "examples/common/images.hpp"
#include "examples/common/report.hpp"
#include "examples/tiny_networks.hpp"
#include "framework/core/error.hpp"
#include "framework/core/path.hpp"
#include "framework/data/cifar.hpp"

using namespace quantrain;

namespace {

constexpr int64_t kSide = 32;

/// Pads images [N, H, W, C] with zeros to 32 x 32. H and W are at most 32.
Dataset padded(const Dataset& images) {
  const Shape& shape = images.image_shape();
  const int64_t height = shape[0], width = shape[1], channels = shape[2];
  if (height > kSide || width > kSide)
    throw DataError("image_classification", "images are ", shape, ", expected at most 32 x 32");
  const int64_t top = (kSide - height) / 2, left = (kSide - width) / 2;
  std::vector<uint8_t> pixels(static_cast<size_t>(images.size() * kSide * kSide * channels));
  for (int64_t i = 0; i < images.size(); ++i) {
    const auto image = images.image(i);
    for (int64_t y = 0; y < height; ++y) {
      const auto row = image.subspan(static_cast<size_t>(y * width * channels),
                                     static_cast<size_t>(width * channels));
      const int64_t to = ((i * kSide + top + y) * kSide + left) * channels;
      std::copy(row.begin(), row.end(), pixels.begin() + to);
    }
  }
  return Dataset({images.size(), kSide, kSide, channels},
                 std::move(pixels),
                 images.labels(),
                 images.classes());
}

Dataset read(const std::string& folder, Split split) {
  if (exists(folder + "/test_batch.bin")) return read_cifar10(folder, split);
  return padded(Dataset::mnist(folder, split));
}

}  // namespace

int main(int argc, char** argv) {
  examples::ImageFlags images;
  return examples::run(
      argc,
      argv,
      {.name = "image_classification",
       .line = {.description = "Trains ResNet-8 on small images and converts it to integers.",
                .data = "folder with CIFAR-10's binary files, or the four IDX files of MNIST's "
                        "format, gzipped or not",
                .defaults = {.epochs = 4, .qat_epochs = 1, .learning_rate = 2e-3f, .limit = 20000},
                .flags = images.flags()},
       .task =
           [&](const examples::Flags& flags) {
             const Dataset training = read(flags.data, Split::kTrain);
             const Dataset test = read(flags.data, Split::kTest);
             return examples::classify_images(
                 examples::dataset_name(flags.data), training, test, flags, images);
           },
       .network =
           [](const examples::Task& task) { return examples::resnet8(task.example.dim(3)); }});
}
