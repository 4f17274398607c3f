// A program for a device: loads a model, reads an image and prints its class. It needs only
// quantrain::runtime.
#include <cstdio>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/integer/integer_model.hpp"
#include "framework/io/metadata.hpp"

int main() try {
  const auto model = quantrain::IntegerModel::load(std::string("model.safetensors"));
  std::vector<uint8_t> image(static_cast<size_t>(model.input_shape().elements()));
  std::FILE* const file = std::fopen("image", "rb");
  if (file == nullptr || std::fread(image.data(), 1, image.size(), file) != image.size())
    throw quantrain::DataError("image", "is no file of ", image.size(), " bytes");
  std::fclose(file);
  int32_t best = 0;
  model.classify_pixels(image, {&best, 1});
  const std::vector<std::string> classes = quantrain::metadata_names(model, "classes");
  std::printf("class %d: %s\n", best, classes.at(static_cast<size_t>(best)).c_str());
  return 0;
} catch (const quantrain::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
